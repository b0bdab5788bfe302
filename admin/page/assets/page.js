// What scripts add to the page, which also works without them: they fill in the token of
// the link, and show turns and log lines live.
"use strict";

(() => {
  const login = document.getElementById("login");
  if (login) {
    const enter = () => {
      if (location.hash.length < 2) return;
      document.getElementById("token").value = location.hash.slice(1);
      history.replaceState(null, "", location.pathname); // so that the token is not in the browser's history
      login.requestSubmit();
    };
    addEventListener("hashchange", enter); // the link was opened in a tab with this page
    enter();
    return;
  }

  const preview = document.getElementById("preview");
  const text = document.getElementById("text");
  if (preview && !text.readOnly) {
    let later = 0;
    text.addEventListener("input", () => {
      clearTimeout(later);
      later = setTimeout(async () => {
        const answer = await fetch("/personas/preview", { method: "POST", body: new URLSearchParams(new FormData(text.form)) });
        if (!answer.ok) return;
        const shown = new DOMParser().parseFromString(await answer.text(), "text/html");
        for (const id of ["preview", "fault"]) document.getElementById(id).replaceChildren(...shown.getElementById(id).childNodes);
      }, 400);
    });
    return;
  }

  const lists = document.getElementById("lists");
  if (lists) {
    const later = () => setTimeout(async () => {
      const answer = await fetch(location.href);
      if (!answer.ok) return;
      const shown = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("lists");
      if (shown && !lists.contains(document.activeElement)) lists.replaceChildren(...shown.childNodes);
      if (lists.querySelector(".live")) later();
    }, 1000);
    if (lists.querySelector(".live")) later();
    return;
  }

  const turns = document.getElementById("turns");
  const log = document.getElementById("log");
  if (!(turns || log) || !window.EventSource) return;
  const most = turns ? 100 : 200;
  const state = document.getElementById("live");
  const pause = document.getElementById("pause");
  const none = document.getElementById("none");
  const what = turns ? "Turns" : "Lines";
  let source = null;

  // add puts a row that the server rendered on top of a list.
  const add = (list, html) => {
    const one = document.createElement("tbody");
    one.innerHTML = html;
    if ([...list.children].some((row) => row.innerHTML === one.firstElementChild.innerHTML)) return; // the list has it already
    list.prepend(one.firstElementChild);
    if (none) none.remove();
    list.firstElementChild.classList.add("new");
    while (list.children.length > most) list.lastElementChild.remove();
  };

  // fill replaces all rows of a list by those that the server rendered.
  const fill = (list, html) => {
    list.innerHTML = html;
    if (none && list.children.length) none.remove();
  };

  const listen = {
    open: () => { state.textContent = what + " are shown live."; },
    error: () => {
      const refused = source.readyState === EventSource.CLOSED; // such as after a restart of the bot
      if (refused) stop();
      state.textContent = refused ? "The connection is lost. Load the page again." : "The connection is lost; trying again.";
    },
    over: () => {
      stop();
      state.textContent = "This session is over.";
    },
    waiting: (event) => { document.getElementById("waiting").textContent = event.data; },
    state: (event) => {
      const now = document.getElementById("state");
      if (!now.contains(document.activeElement)) now.innerHTML = event.data; // the server rendered it
    },
    running: (event) => { document.getElementById("running").innerHTML = event.data; },
    turns: (event) => fill(turns, event.data),
    lines: (event) => fill(log, event.data),
    turn: (event) => add(turns, event.data),
    log: (event) => add(log, event.data),
  };
  const start = () => {
    source = new EventSource(turns ? "/live" : "/log/live" + location.search);
    for (const [name, hear] of Object.entries(listen)) source.addEventListener(name, hear);
    pause.textContent = "Pause";
  };
  const stop = () => {
    source.close();
    source = null;
    state.textContent = "Paused.";
    pause.textContent = "Go on";
  };
  pause.hidden = false;
  pause.addEventListener("click", () => (source ? stop() : start()));
  start();
})();
