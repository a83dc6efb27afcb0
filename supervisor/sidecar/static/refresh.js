// Loads the page again every five seconds while it is looked at, and keeps what was unfolded and how far it was scrolled.
// Without it the browser does so by itself, more rudely (see the noscript of overview.html).
"use strict";

const EVERY_MS = 5000;

async function refresh() {
  if (document.hidden || String(getSelection())) return;
  try {
    const answer = await fetch(location.href, { cache: "no-store" });
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const page = fresh.getElementById("page");
    if (!answer.ok || !page) throw new Error(`the sidecar answers ${answer.status}`);
    const open = [...document.querySelectorAll("details")].map((one) => one.open);
    const scrolled = [...document.querySelectorAll(".wide")].map((one) => one.scrollLeft);
    document.getElementById("page").replaceWith(page);
    document.title = fresh.title;
    page.querySelectorAll("details").forEach((one, index) => { one.open = open[index] ?? false; });
    page.querySelectorAll(".wide").forEach((one, index) => { one.scrollLeft = scrolled[index] ?? 0; });
    document.documentElement.classList.remove("stale");
  } catch {
    // What is shown is old now, and must not look as if it were not.
    document.documentElement.classList.add("stale");
  }
}

setInterval(refresh, EVERY_MS);
