"use strict";
// Of few items, the details lie in a <noscript> as escaped HTML: without scripts they are simply there, with scripts they
// are text until the item is opened. Many items lie in blocks of deflated JSON, and only those of one page of the list
// are elements: ten thousand cost no more than a hundred.
(() => {
  const index = JSON.parse(document.getElementById("index").textContent);
  const form = document.getElementById("filters");
  const field = (id) => document.getElementById(id);
  const list = field("list"), status = field("shown");
  const boxes = [...form.querySelectorAll("input[name=outcome]")];
  const paged = index.size !== undefined, total = index.items.length;
  const blocks = [...document.querySelectorAll("script.block")];
  const places = new Map(paged ? index.anchors.map((anchor, place) => [anchor, place]) : []);
  const kept = new Map(); // blocks that were unpacked last
  const KEPT = 12; // blocks of 1 MB or so
  const texts = new Array(total).fill(null);
  let items = paged ? [] : [...list.children]; // the elements that there are
  let found = [], page = 0, turn = 0; // the places that fit; the page of the list; which request is the last one
  let waiting = 0; // the timer of a text that is being typed

  const unpacked = async (number) => {
    if (!kept.has(number)) {
      const bytes = Uint8Array.from(atob(blocks[number].textContent), (sign) => sign.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
      kept.set(number, new Response(stream).json());
      if (kept.size > KEPT) kept.delete(kept.keys().next().value);
    }
    return kept.get(number);
  };
  const row = async (place) => (await unpacked(Math.floor(place / index.size)))[place % index.size];
  const made = (html) => {
    const template = document.createElement("template");
    template.innerHTML = html;
    return template.content;
  };
  const element = async (place) => {
    const [summary, details] = await row(place);
    const item = document.createElement("details");
    item.className = "item";
    item.id = index.anchors[place];
    item.append(document.createElement("summary"));
    item.firstChild.append(made(summary));
    item.details = details; // made when it is opened
    return item;
  };

  const fill = (item) => {
    const hidden = item.querySelector(":scope > noscript");
    if (hidden !== null) hidden.replaceWith(made(hidden.textContent));
    else if (item.details !== undefined) { item.append(made(item.details)); delete item.details; }
  };
  const open = (item) => { fill(item); item.open = true; };

  const plain = (text) => text.normalize("NFKC").toLowerCase();
  const decoded = (html) => html.replace(/<[^>]*>/g, "").replace(/&lt;/g, "<").replace(/&gt;/g, ">")
    .replace(/&#39;/g, "'").replace(/&#34;/g, '"').replace(/&amp;/g, "&");
  const answer = (html) => {
    const start = html.indexOf('<div class="answer text"');
    return decoded(html.slice(start, html.indexOf("</div>", start)));
  };
  const searched = (summary, details) => plain(summary.replace(/\s+/g, " ") + "\n" + details);
  const haystack = (place) => {
    if (texts[place] === null) {
      const item = items[place], hidden = item.querySelector(":scope > noscript");
      const details = hidden === null ? item.querySelector(".answer")?.textContent ?? "" : answer(hidden.textContent);
      texts[place] = searched(item.querySelector("summary").textContent, details);
    }
    return texts[place];
  };
  const readAll = async (mine) => {
    for (let number = 0; number < blocks.length && mine === turn; number++) {
      const first = number * index.size;
      if (texts[first] !== null) continue;
      status.textContent = `Searching, ${first} of ${total} items`;
      (await unpacked(number)).forEach(([summary, details], place) => { texts[first + place] = searched(decoded(summary), answer(details)); });
    }
  };

  const wanted = () => ({
    words: (plain(field("text").value).match(/"[^"]+"|\S+/g) ?? []).map((word) => word.replace(/^"|"$/g, "")),
    pair: field("pair").value,
    outcomes: new Set(boxes.filter((box) => box.checked).map((box) => box.value)),
    reason: field("reason")?.value ?? "",
    trait: field("trait")?.value ?? "",
    state: field("state")?.value ?? "",
  });
  const fits = (place, want) => {
    const about = index.items[place];
    if (want.pair !== "" && String(about.p) !== want.pair) return false;
    if (want.outcomes.size && !want.outcomes.has(about.o)) return false;
    if (want.reason !== "" && String(about.f) !== want.reason) return false;
    if (want.trait !== "") {
      const trait = about.t.find((one) => String(one[0]) === want.trait);
      if (!trait) return false;
      if (want.state !== "" && want.state !== `state ${trait[1]}` && !(trait[1] === "ok" && want.state === `score ${trait[2]}`)) return false;
    }
    return want.words.length === 0 || want.words.every((word) => haystack(place).includes(word));
  };
  const say = (count, more = "") => {
    status.textContent = `${count} of ${total} items${more}`;
    field("none").hidden = count > 0 || total === 0;
  };
  const turnTo = async (number, mine) => {
    const from = number * index.size, some = found.slice(from, from + index.size);
    const elements = await Promise.all(some.map(element));
    if (mine !== turn) return;
    page = number;
    items = elements;
    list.replaceChildren(...elements);
    const last = Math.max(Math.ceil(found.length / index.size) - 1, 0);
    field("pages").hidden = last === 0;
    field("where").textContent = `Page ${page + 1} of ${last + 1}: items ${from + 1} to ${from + some.length}`;
    field("before").disabled = page === 0;
    field("after").disabled = page === last;
    say(found.length);
  };
  const apply = async () => {
    const want = wanted(), mine = ++turn;
    clearTimeout(waiting); // this reads the text too
    if (paged) {
      if (want.words.length) await readAll(mine);
      if (mine !== turn) return;
      found = index.items.map((_, place) => place).filter((place) => fits(place, want));
      return turnTo(0, mine);
    }
    let count = 0;
    items.forEach((item, place) => {
      const fit = fits(place, want);
      if (item.hidden === fit) item.hidden = !fit;
      count += fit;
    });
    say(count);
  };

  const option = (value, label) => {
    const made = document.createElement("option");
    made.value = value;
    made.textContent = label;
    return made;
  };
  const offerStates = () => {
    const select = field("state");
    if (!select) return;
    const trait = field("trait").value, counts = new Map();
    const add = (key) => counts.set(key, (counts.get(key) ?? 0) + 1);
    if (trait !== "") for (const about of index.items) for (const [name, state, word] of about.t) if (String(name) === trait) {
      add(`state ${state}`);
      if (state === "ok" && word !== "") add(`score ${word}`);
    }
    const sorted = [...counts].sort(([a], [b]) => (a < b ? 1 : -1));
    select.replaceChildren(option("", "any"), ...sorted.map(([key, count]) => option(key, `${key.replace(" ", ": ")} (${count})`)));
    select.disabled = trait === "";
  };

  const addressed = async () => {
    const id = location.hash.slice(1);
    if (!id.startsWith("item-")) return null;
    if (!paged) {
      const item = document.getElementById(id) ?? document.getElementById(decodeURIComponent(id));
      return items.includes(item) ? item : null;
    }
    const place = places.get(id) ?? places.get(decodeURIComponent(id));
    if (place === undefined) return null;
    if (!items.some((item) => item.id === index.anchors[place])) {
      const position = found.indexOf(place);
      if (position >= 0) await turnTo(Math.floor(position / index.size), ++turn);
      else {
        const item = await element(place); // filtered out, and shown before the others all the same
        item.hidden = true;
        items.unshift(item);
        list.prepend(item);
      }
    }
    return items.find((item) => item.id === index.anchors[place]) ?? null;
  };
  const target = async () => {
    const item = await addressed();
    if (item === null) return;
    if (item.hidden) {
      item.hidden = false;
      status.textContent += ", and the one that was asked for";
      field("none").hidden = true;
    }
    open(item);
    item.scrollIntoView();
    item.querySelector("summary").focus({ preventScroll: true });
  };

  // What has to be scrolled can be reached with the keyboard; short texts are no stops on the way.
  const reachable = (part) => {
    const texts = [...part.querySelectorAll(".text")].filter((text) => text.scrollHeight > text.clientHeight);
    for (const text of texts) {
      text.tabIndex = 0;
      text.setAttribute("role", "group");
      text.setAttribute("aria-label", "Long text");
    }
  };
  const near = new IntersectionObserver((entries) => entries.filter((entry) => entry.isIntersecting).forEach(({ target }) => {
    near.unobserve(target);
    target.classList.remove("far");
    reachable(target);
  }), { rootMargin: "50%" }); // to measure texts is slow, so those far away wait
  document.addEventListener("toggle", (event) => {
    if (!event.target.open) return;
    if (!event.target.classList.contains("item")) return reachable(event.target);
    fill(event.target);
    near.observe(event.target);
  }, true);
  if (field("trait")) field("trait").append(...index.traits.map((name, place) => option(String(place), name.length > 80 ? `${name.slice(0, 80)}…` : name)));
  field("text").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(apply, 120); });
  form.addEventListener("change", (event) => { if (event.target.id === "trait") offerStates(); if (event.target.id !== "text") apply(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => { offerStates(); apply(); }));
  field("unfold").addEventListener("click", () => {
    const shown = items.filter((item) => !item.hidden);
    const some = () => { shown.splice(0, 20).forEach((item) => { item.classList.add("far"); open(item); }); if (shown.length) setTimeout(some); };
    some();
  });
  field("fold").addEventListener("click", () => items.forEach((item) => { item.open = false; }));
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-pair]");
    if (!link) return;
    form.reset();
    field("pair").value = link.dataset.pair;
    if (field("reason")) field("reason").value = link.dataset.reason ?? "";
    boxes.forEach((box) => { box.checked = box.value === link.dataset.outcome; });
    setTimeout(apply);
  });
  field("before").addEventListener("click", () => turnTo(page - 1, ++turn).then(() => list.scrollIntoView()));
  field("after").addEventListener("click", () => turnTo(page + 1, ++turn).then(() => list.scrollIntoView()));
  window.addEventListener("hashchange", target);
  form.hidden = total === 0;
  apply().then(target);
  if (!paged) window.addEventListener("load", () => setTimeout(target)); // the browser's own jump comes last and takes the focus
})();
