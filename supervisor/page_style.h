/*
 * How the status page looks: its style sheet, whole. Light and dark as the reader's system is; below 46rem each row of a
 * table becomes a card, so that nothing ever scrolls sideways.
 */
#ifndef SUPERVISOR_PAGE_STYLE_H
#define SUPERVISOR_PAGE_STYLE_H

static const char page_style[] =
    ":root{color-scheme:light dark;--ground:#f6f7f9;--card:#fff;--ink:#1b2430;--soft:#5d6877;--line:#e1e5ea;"
    "--good:#146c3a;--good-ground:#e4f5ea;--bad:#b3261e;--bad-ground:#fdecea;--warn:#8a5a00;--warn-ground:#fdf3dd}"
    "@media(prefers-color-scheme:dark){:root{--ground:#12161c;--card:#1a2029;--ink:#e6eaf0;--soft:#98a3b3;"
    "--line:#2b3440;--good:#6fd397;--good-ground:#16301f;--bad:#ff9a92;--bad-ground:#3a1a18;--warn:#f0c36a;"
    "--warn-ground:#33280f}}"
    "*{box-sizing:border-box}"
    "body{margin:0 auto;max-width:76rem;padding:1.5rem 1.25rem 3rem;background:var(--ground);color:var(--ink);"
    "font:15px/1.45 system-ui,sans-serif;overflow-wrap:break-word}"
    "h1{font-size:1.35rem;margin:0}h1 b{font-weight:600}h1 span{color:var(--soft);font-weight:400}"
    "h2{font-size:1rem;margin:2rem 0 .6rem}h2 span{color:var(--soft);font-weight:400}"
    "header{display:flex;flex-wrap:wrap;gap:.5rem 1rem;align-items:center;justify-content:space-between}"
    ".verdict{margin:0;padding:.3rem .8rem;border-radius:1rem;font-weight:600}"
    ".good{color:var(--good);background:var(--good-ground)}"
    ".bad{color:var(--bad);background:var(--bad-ground)}"
    ".warn{color:var(--warn);background:var(--warn-ground)}"
    "dl{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:1px;margin:1.2rem 0 0;"
    "border:1px solid var(--line);border-radius:.5rem;background:var(--card);overflow:hidden}"
    "dl div{box-shadow:0 0 0 1px var(--line);padding:.55rem .8rem}"
    "dt{color:var(--soft);font-size:.8rem}dd{margin:0;font-variant-numeric:tabular-nums}"
    "table{width:100%;border-collapse:separate;border-spacing:0;background:var(--card);border:1px solid var(--line);"
    "border-radius:.5rem;overflow:hidden;font-variant-numeric:tabular-nums}"
    "h1,dd,.name,.owner,.why{overflow-wrap:anywhere}.owner{min-width:7rem}"
    "th{text-align:left;white-space:nowrap;font-size:.8rem;font-weight:500;color:var(--soft);padding:.5rem .8rem}"
    "td{padding:.45rem .8rem;vertical-align:top}"
    "tbody tr:first-child td{border-top:1px solid var(--line)}"
    ".n{text-align:right;white-space:nowrap}"
    "a{color:inherit}.name{font-weight:600}.soft,p{color:var(--soft)}"
    ".state{display:inline-block;padding:0 .55rem;border-radius:.7rem;font-size:.87rem;white-space:nowrap}"
    ".why td{padding-top:0;color:var(--soft);font-size:.9rem}.late .why td{color:var(--bad)}"
    ".late td:first-child{box-shadow:inset 3px 0 var(--bad)}"
    "@media(max-width:46rem){"
    "body{padding:1rem .8rem 2rem}"
    "dl{grid-template-columns:1fr 1fr}"
    "table{display:block;background:none;border:0;border-radius:0}thead{display:none}"
    "tbody{display:block;background:var(--card);border:1px solid var(--line);border-radius:.5rem;margin:0 0 .6rem;"
    "padding:.55rem .8rem}"
    "tbody.late{border-left:3px solid var(--bad)}"
    "tr{display:grid;grid-template-columns:1fr 1fr;gap:.15rem .8rem}"
    "td,tbody tr:first-child td{display:block;padding:0;border:0;text-align:left}"
    ".n{white-space:normal}.owner{min-width:0}"
    "td.name,.why td{grid-column:1/-1}.why td{padding-top:.35rem}"
    "td[data-l]::before{content:attr(data-l);display:block;color:var(--soft);font-size:.75rem}"
    ".late td:first-child{box-shadow:none}"
    "}";

#endif
