/**
 * A small web client: what it knows of its rooms is in the page, anew after each event. Plain JavaScript, because the
 * compiler of this project knows of no browser.
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

let isDue = false;

/** Shows everything as it is now, once for all that has happened in this turn. */
function show() {
  if (isDue) return;
  isDue = true;
  setTimeout(() => {
    isDue = false;
    main.replaceChildren(...client.getRooms().map(roomSection));
  });
}

function roomSection(room) {
  const section = element('section', { 'data-room': room.roomId, 'data-membership': room.getMyMembership() });
  section.append(element('h2', { 'data-space': String(room.isSpaceRoom()) }, room.name));
  for (const child of room.currentState.getStateEvents('m.space.child')) {
    section.append(element('p', { 'data-child': child.getStateKey() }, child.getStateKey()));
  }
  const tombstone = room.currentState.getStateEvents('m.room.tombstone', '');
  if (tombstone) section.append(successor(tombstone.getContent()['replacement_room']));
  section.append(...room.getLiveTimeline().getEvents().filter(isMessage).map(message));
  for (const thread of room.getThreads()) section.append(threadList(thread));
  if (room.getMyMembership() === 'join') section.append(sayForm(room.roomId));
  return section;
}

const isMessage = (event) => event.getType() === 'm.room.message' && !event.isRelation('m.replace');

function message(event) {
  const { body } = event.getContent();
  const item = element('p', { 'data-event': event.getId(), 'data-edited': String(!!event.replacingEvent()) });
  const sender = element('b', {}, event.sender?.name ?? event.getSender());
  item.append(sender, ': ', element('span', {}, body), ...reactions(event));
  return item;
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
  const button = element('button', { 'data-successor': roomId }, 'This room goes on elsewhere');
  button.addEventListener('click', () => client.joinRoom(roomId));
  return button;
}

const forms = new Map();

function sayForm(roomId) {
  // What is being written stays when the room is shown anew.
  const present = forms.get(roomId);
  if (present) return present;
  const form = element('form', { 'data-say': roomId });
  forms.set(roomId, form);
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
