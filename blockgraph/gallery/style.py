"""How the pages of a gallery look, on a light page and on a dark one, on a screen and in print."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root { --paper: #ffffff; --sheet: #f6f8fa; --ink: #16191d; --soft: #3d444d; --line: #c6ccd3; --link: #004a99;
  --fault: #99001a; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #0d1117; --sheet: #161b22; --ink: #f0f3f6; --soft: #c3cbd4; --line: #3d444d; --link: #79b8ff;
    --fault: #ff9d96; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem 1.5rem 3rem; max-width: 84rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", "Liberation Sans", Arial, sans-serif; overflow-wrap: anywhere; }
header { margin-bottom: 1.5rem; }
header p { color: var(--soft); margin: 0.25rem 0; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0; }
h2 { font-size: 1.2rem; margin: 1.75rem 0 0.75rem; }
h3 { font-size: 1rem; margin: 0; }
a { color: var(--link); }
a:focus-visible, summary:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
bdi { white-space: pre-wrap; }
code, pre { font-family: ui-monospace, Menlo, Consolas, "Liberation Mono", monospace; font-size: 0.87em; }
pre { background: var(--sheet); border: 1px solid var(--line); border-radius: 6px; padding: 0.75rem; overflow-x: auto; }
.fault { color: var(--fault); font-weight: 600; margin: 0.5rem 0; }
svg text { font-family: Arial, "Liberation Sans", Helvetica, sans-serif; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr)); gap: 1rem; }
article { display: flex; flex-direction: column; gap: 0.5rem; border: 1px solid var(--line); border-radius: 8px;
  padding: 0.75rem; content-visibility: auto; contain-intrinsic-size: auto 34rem; }
.thumb { display: grid; place-items: center; height: 20rem; color: var(--soft); }
.thumb svg { width: 100%; height: 20rem; }
dl { margin: 0; display: grid; gap: 0.4rem; }
dt { color: var(--soft); font-size: 0.8rem; }
dd { margin: 0; }
article dl { gap: 0.2rem; }
article dd { font-size: 0.87rem; line-height: 1.35; }
.sides { display: grid; grid-template-columns: minmax(0, 3fr) minmax(18rem, 2fr); gap: 2rem; align-items: start; }
.sides h2 { margin-top: 0; }
figure { margin: 0; overflow-x: auto; }
figure svg { max-width: 100%; height: auto; }
.other { border-top: 1px solid var(--line); padding: 0.6rem 0; display: grid;
  grid-template-columns: minmax(0, 14rem) minmax(0, 1fr); gap: 1rem; content-visibility: auto;
  contain-intrinsic-size: auto 6rem; }
.other ul { margin: 0; padding: 0; list-style: none; }
.other li { padding-left: 1rem; text-indent: -1rem; }
@media (max-width: 50rem) { .sides, .other { grid-template-columns: minmax(0, 1fr); } }
"""
