/**
 * A small web client that shows the state of its rooms, and updates the page after each event. It is plain
 * JavaScript, because this project's TypeScript configuration has no browser types.
 */
import { ClientEvent, createClient, MatrixEventEvent, RoomEvent, ThreadEvent } from 'matrix-js-sdk';

const find = (selector) => document.querySelector(selector);
const main = find('main');
let client;

find('#login').addEventListener('submit', async (submission) => {
  submission.preventDefault();
  const { server, user, password } = Object.fromEntries(new FormData(submission.target));
  const identifier = { type: 'm.id.user', user };
  const login = await createClient({ baseUrl: server }).loginRequest({
    type: 'm.login.password',
    identifier,
    password,
  });
  client = createClient({
    baseUrl: server,
    accessToken: login.access_token,
    userId: login.user_id,
    deviceId: login.device_id,
  });
  client.on(ClientEvent.Sync, (state) => {
    find('#state').textContent = state;
    show();
  });
  for (const event of [
    ClientEvent.Room,
    RoomEvent.Timeline,
    RoomEvent.Name,
    RoomEvent.MyMembership,
    ThreadEvent.New,
    ThreadEvent.Update,
    MatrixEventEvent.Replaced,
    MatrixEventEvent.RelationsCreated,
  ]) {
    client.on(event, show);
  }
  find('#knock').hidden = false;
  await client.startClient({ threadSupport: true, initialSyncLimit: 50 });
});

find('#knock').addEventListener('submit', async (submission) => {
  submission.preventDefault();
  await client.knockRoom(new FormData(submission.target).get('room'), { viaServers: [] });
});

let isScheduled = false;

/** Updates the page once for all events of the current turn of the event loop. */
function show() {
  if (isScheduled) return;
  isScheduled = true;
  setTimeout(() => {
    isScheduled = false;
    const shown = client.getRooms().map(roomSection);
    for (const section of [...main.children]) if (!shown.includes(section)) section.remove();
    for (const section of shown) if (!section.isConnected) main.append(section);
  });
}

const sections = new Map();

/** Updates a room's section. Its form stays in the page, because a click would be lost while it is detached. */
function roomSection(room) {
  const { roomId } = room;
  const made = sections.get(roomId) ?? element('section', { 'data-room': roomId });
  if (!sections.has(roomId)) {
    sections.set(roomId, made);
    made.append(element('div', {}), sayForm(roomId));
  }
  const membership = room.getMyMembership();
  made.setAttribute('data-membership', membership);
  made.lastChild.hidden = membership !== 'join';
  made.firstChild.replaceChildren(...contentOf(room));
  return made;
}

function contentOf(room) {
  const tombstone = room.currentState.getStateEvents('m.room.tombstone', '');
  return [
    element('h2', { 'data-space': String(room.isSpaceRoom()) }, room.name),
    ...room.currentState
      .getStateEvents('m.space.child')
      .map((child) => element('p', { 'data-child': child.getStateKey() }, child.getStateKey())),
    ...(tombstone ? [successor(tombstone.getContent()['replacement_room'])] : []),
    ...room.getLiveTimeline().getEvents().filter(isMessage).map(message),
    ...room.getThreads().map(threadList),
  ];
}

const isMessage = (event) => event.getType() === 'm.room.message' && !event.isRelation('m.replace');

function message(event) {
  const { body } = event.getContent();
  const item = element('p', { 'data-event': event.getId(), 'data-edited': String(!!event.replacingEvent()) });
  const sender = element('b', {}, event.sender?.name ?? event.getSender());
  item.append(sender, ': ', element('span', {}, body), ...reactions(event), ...previews(body));
  return item;
}

/** Previews by URL: they stay in the page when the messages around them are shown again. */
const shownPreviews = new Map();

/** Shows the preview of each link in a message. */
function previews(body) {
  return [...(body ?? '').matchAll(/https?:\/\/\S+/g)].map(([url]) => {
    if (!shownPreviews.has(url)) {
      const card = element('article', { 'data-preview': url });
      shownPreviews.set(url, card);
      void fillPreview(card, url);
    }
    return shownPreviews.get(url);
  });
}

async function fillPreview(card, url) {
  const preview = await client.getUrlPreview(url, Date.now());
  card.append(
    ...['og:site_name', 'og:title', 'og:description']
      .filter((name) => preview[name])
      .map((name) => element('div', { 'data-property': name }, preview[name])),
  );
  if (preview['og:image']) {
    const link = client.mxcUrlToHttp(preview['og:image'], 320, 240, 'scale', false, true, true);
    const headers = { authorization: `Bearer ${client.getAccessToken()}` };
    const bytes = await (await fetch(link, { headers })).blob();
    const image = element('img', { src: URL.createObjectURL(bytes), alt: '' });
    await image.decode();
    image.setAttribute('data-width', String(image.naturalWidth));
    card.append(image);
  }
  card.setAttribute('data-complete', 'true');
}

function reactions(event) {
  const room = client.getRoom(event.getRoomId());
  const children = room.relations.getChildEventsForEvent(event.getId(), 'm.annotation', 'm.reaction');
  const sorted = children?.getSortedAnnotationsByKey() ?? [];
  return sorted.map(([key, events]) => element('i', { 'data-reaction': key }, ` ${key} ${events.size}`));
}

function threadList(thread) {
  const list = element('div', { 'data-thread': thread.id, 'data-length': String(thread.length) });
  list.append(
    ...thread.events.filter((event) => isMessage(event) && event.getId() !== thread.id).map(message),
  );
  return list;
}

function successor(roomId) {
  const button = element('button', { 'data-successor': roomId }, 'This room was replaced');
  button.addEventListener('click', () => client.joinRoom(roomId));
  return button;
}

function sayForm(roomId) {
  const form = element('form', { 'data-say': roomId });
  form.append(element('input', { name: 'text' }), element('button', {}, 'Say'));
  form.addEventListener('submit', async (submission) => {
    submission.preventDefault();
    await client.sendTextMessage(roomId, new FormData(form).get('text'));
  });
  return form;
}

function element(name, attributes, text) {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  if (text !== undefined) made.textContent = text;
  return made;
}
