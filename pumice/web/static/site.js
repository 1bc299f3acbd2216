// Keeps the page current: an event says that there is something new, the page is read again, and what differs is replaced.
// Without events it is read every few seconds. Everything can be read without this file.
"use strict";
(() => {
  const POLL = 5000;
  let events = null, streaming = false, reading = false, again = false;

  const key = (node) => (node.dataset && node.dataset.key) || node.id || "";

  // Makes one element like another; elements with the same key stay, and with them focus, selection and what is opened.
  function morph(old, now) {
    if (old.isEqualNode(now)) return;
    for (const { name } of [...old.attributes]) {
      if (!now.hasAttribute(name) && !(name === "open" || (name === "tabindex" && old.closest(".cells")))) old.removeAttribute(name);
    }
    for (const { name, value } of now.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    const keyed = new Map();
    for (const each of old.children) if (key(each)) keyed.set(key(each), each);
    let place = old.firstChild;
    for (const next of [...now.childNodes]) {
      const known = next.nodeType === Node.ELEMENT_NODE && key(next) ? keyed.get(key(next)) : null;
      let match = known && known.nodeName === next.nodeName ? known : null;
      if (!match && place && place.nodeType === next.nodeType && place.nodeName === next.nodeName && !(place.dataset && key(place))) match = place;
      if (!match) {
        old.insertBefore(next, place);
      } else {
        if (match === place) place = place.nextSibling;
        else old.insertBefore(match, place);
        if (match.nodeType === Node.ELEMENT_NODE) morph(match, next);
        else if (match.nodeValue !== next.nodeValue) match.nodeValue = next.nodeValue;
      }
    }
    while (place) {
      const next = place.nextSibling;
      place.remove();
      place = next;
    }
  }

  async function read() {
    if (reading) { again = true; return; }
    reading = true;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (!answer.ok) throw new Error(page.querySelector("main p")?.textContent || String(answer.status));
      document.title = page.title;
      const filters = document.querySelector(".filters");
      if (filters && filters.contains(document.activeElement)) page.querySelector(".filters")?.replaceWith(filters.cloneNode(true));
      const heading = document.querySelector("h1").textContent, next = page.querySelector("h1").textContent;
      if (heading !== next) document.getElementById("said").textContent = next;
      for (const id of ["banner", "main"]) morph(document.getElementById(id), page.getElementById(id));
      document.getElementById("clock").textContent = page.getElementById("clock").textContent;
      cells();
    } catch (error) {
      const shown = document.getElementById("clock").textContent;
      const text = document.createElement("p");
      text.textContent = `pumice web does not answer (${error.message}). What is shown is as of ${shown}.`;
      document.getElementById("banner").replaceChildren(text);
    } finally {
      reading = false;
      if (again) { again = false; read(); }
    }
  }

  // A browser has six connections for all tabs of a site: one that nobody sees must hold none.
  function listen() {
    if (!window.EventSource || events || document.hidden) return;
    events = new EventSource("/events");
    events.onopen = () => { streaming = true; read(); };
    events.onerror = () => {
      streaming = false;
      if (events.readyState === EventSource.CLOSED) { events = null; setTimeout(listen, POLL); }
    };
    events.addEventListener("change", read);
  }

  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) { read(); listen(); return; }
    if (events) events.close();
    events = null;
    streaming = false;
  });

  // Cells of nodes: one is reached by the tab key, the others by arrow keys.
  function cells() {
    for (const list of document.querySelectorAll(".cells")) {
      const links = [...list.querySelectorAll("a")];
      const first = links.find((each) => each === document.activeElement) || links.find((each) => each.tabIndex === 0 && each.hasAttribute("tabindex")) || links[0];
      for (const each of links) each.tabIndex = each === first ? 0 : -1;
    }
  }

  document.addEventListener("keydown", (event) => {
    const cell = event.target.closest && event.target.closest(".cells a");
    if (!cell) return;
    const links = [...cell.closest(".cells").querySelectorAll("a")];
    const place = links.indexOf(cell), top = cell.offsetTop;
    const row = Math.max(links.filter((each) => each.offsetTop === top).length, 1);
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: row, ArrowUp: -row, Home: -place, End: links.length - 1 - place };
    if (!(event.key in steps)) return;
    event.preventDefault();
    const next = links[Math.min(Math.max(place + steps[event.key], 0), links.length - 1)];
    cell.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });

  function age() {
    for (const each of document.querySelectorAll("time[data-age]")) {
      const seconds = Math.max(0, Math.round((Date.now() - Date.parse(each.dateTime)) / 1000));
      each.textContent = `${new Date(each.dateTime).toLocaleTimeString()}, ${seconds} s ago`;
    }
  }

  for (const each of document.querySelectorAll('meta[http-equiv="refresh"]')) each.remove();
  cells();
  listen();
  setInterval(() => { if (!streaming && !document.hidden) read(); }, POLL);
  setInterval(age, 1000);
})();
