/*
 * The little XML that S3 speaks: elements by their path, read with expat.
 */
#ifndef COMMON_S3_XML_H
#define COMMON_S3_XML_H

#include <stdbool.h>
#include <stddef.h>

/* Told of each element at its end: the path from the root ("ListBucketResult/Contents/Key") and the text that stands in
 * it directly. Both are valid during the call. */
typedef void s3_xml_element(void *argument, const char *path, const char *text, size_t text_size);

/* False where it isn't well-formed XML, or has a document type (no answer of S3 has one, and only hostile ones use
 * it). What was told before must then be forgotten. White space before it is passed over: it keeps a connection alive
 * while a service is still at work. */
bool s3_xml_read(const char *bytes, size_t size, s3_xml_element *element, void *argument);

/* Adds text as an element's content is spelled. */
struct byte_buffer;
void s3_xml_add_text(struct byte_buffer *out, const char *text);

#endif
