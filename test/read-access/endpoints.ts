import { SlidingClient } from '../support/users/sliding-client.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';
import {
  canAskForAliases,
  firstOfParts,
  forMembers,
  found,
  history,
  historyOfStream,
  historyOfSync,
  type Look,
  memberState,
  nameAtJoin,
  nameBefore,
  nameForSummary,
  notified,
  related,
  state,
  threads,
} from './expectations.ts';
import { type Kind, markOf, parts, type Story } from './scenario.ts';

/** One way to look at a room. */
export interface Endpoint {
  /** All that the endpoint tells the user of the room, in any form that has the marks in it. */
  look(person: TestClient, story: Story): Promise<string>;
  /** The marks that must be in it, and no others. */
  expected(look: Look): readonly string[];
}

type Query = Record<string, string | number | boolean>;

/** Answers, of which the errors count for nothing. */
const get = (person: TestClient, path: string, query: Query = {}) =>
  getPath(person, `/_matrix/client/v3${path}`, query);

async function getPath(person: TestClient, path: string, query: Query = {}): Promise<string> {
  const { status, body } = await person.ask('GET', path, undefined, query);
  return status === 200 ? textOf(body) : '';
}

/** Without the content that state replaced: who sees a change of the state has known the state before it. */
const textOf = (json: unknown) =>
  JSON.stringify(json, (key, value) => (key === 'prev_content' ? undefined : (value as unknown)));

const room = ({ roomId }: Story, rest: string) => `/rooms/${enc(roomId)}/${rest}`;
const v1 = (path: string) => `/_matrix/client/v1${path}`;

/** Asks for each event of the story. */
async function forEach(
  events: Iterable<readonly [mark: string, eventId: string]>,
  ask: (eventId: string, mark: string) => Promise<string>,
): Promise<string> {
  let all = '';
  for (const [mark, eventId] of events) all += `${await ask(eventId, mark)}\n`;
  return all;
}

const roots = ({ visibility, events }: Story) =>
  parts.map((part) => [part, events.get(markOf(visibility, part, 'root'))!] as const);

/** The mark of an event whose id was told. */
const markOfId = ({ events }: Story, text: string) => {
  const { event_id } = JSON.parse(text || '{}') as { event_id?: string };
  return [...events].find(([, eventId]) => eventId === event_id)?.[0] ?? '';
};

const whole = { room: { include_leave: true, timeline: { limit: 100 } } };

const nothing = () => [];

/** By the `operationId` of the specification, or what the endpoint is called. */
export const endpoints: Readonly<Record<string, Endpoint>> = {
  getRoomEvents: {
    look: async (person, story) =>
      (await get(person, room(story, 'messages'), { dir: 'b', limit: 100 })) +
      (await get(person, room(story, 'messages'), { dir: 'f', limit: 100 })),
    expected: history,
  },
  'getRoomEvents from a token': {
    look: (person, story) =>
      get(person, room(story, 'messages'), { dir: 'b', limit: 100, from: story.tokens.end }),
    expected: history,
  },
  getOneRoomEvent: {
    look: (person, story) => forEach(story.events, (id) => get(person, room(story, `event/${enc(id)}`))),
    expected: history,
  },
  getOneEvent: {
    look: (person, story) => forEach(story.events, (id) => get(person, `/events/${enc(id)}`)),
    expected: (look) => (look.viewer === 'guest' ? [] : history(look)),
  },
  getEventContext: {
    look: (person, story) =>
      forEach(story.events, (id) => get(person, room(story, `context/${enc(id)}`), { limit: 100 })),
    expected: (look) => (history(look).length === 0 ? [] : [...history(look), ...state(look)]),
  },
  getEventByTimestamp: {
    look: (person, story) =>
      forEach(
        story.times.map((ts) => [String(ts), '']),
        async (_, ts) => {
          const path = v1(room(story, 'timestamp_to_event'));
          return markOfId(story, await getPath(person, path, { ts, dir: 'f' }));
        },
      ),
    expected: firstOfParts,
  },
  getRoomState: { look: (person, story) => get(person, room(story, 'state')), expected: state },
  getRoomStateWithKey: {
    look: async (person, story) => {
      const keys = parts.map((part) => `state/org.example.state/part${part}`);
      let all = '';
      for (const key of [...keys, 'state/m.room.name/']) all += await get(person, room(story, key));
      return all;
    },
    expected: (look) => state(look).filter((mark) => !mark.endsWith('member')),
  },
  getMembersByRoom: {
    look: (person, story) => get(person, room(story, 'members')),
    expected: (look) => state(look).filter((mark) => mark.endsWith('member')),
  },
  'getMembersByRoom at a token': {
    look: (person, story) => get(person, room(story, 'members'), { at: story.tokens.end }),
    expected: (look) => state(look).filter((mark) => mark.endsWith('member')),
  },
  getJoinedMembersByRoom: {
    look: (person, story) => get(person, room(story, 'joined_members')),
    expected: (look) =>
      forMembers(
        look,
        memberState(look).filter((mark) => mark.endsWith('member')),
      ),
  },
  getRelatingEvents: {
    look: (person, story) =>
      forEach(story.events, (id) => getPath(person, v1(room(story, `relations/${enc(id)}`)), { limit: 100 })),
    expected: related,
  },
  getRelatingEventsWithRelType: {
    look: (person, story) =>
      forEach(story.events, (id) =>
        getPath(person, v1(room(story, `relations/${enc(id)}/m.thread`)), { limit: 100 }),
      ),
    expected: (look) => related(look).filter((mark) => /reply|late/.test(mark)),
  },
  getRelatingEventsWithRelTypeAndEventType: {
    look: (person, story) =>
      forEach(story.events, (id) =>
        getPath(person, v1(room(story, `relations/${enc(id)}/m.annotation/m.reaction`)), { limit: 100 }),
      ),
    expected: (look) => related(look).filter((mark) => mark.endsWith('reaction')),
  },
  getThreadRoots: {
    look: (person, story) => getPath(person, v1(room(story, 'threads')), { limit: 100 }),
    expected: threads,
  },
  search: {
    look: async (person) => {
      const context = { before_limit: 3, after_limit: 3, include_profile: true };
      const body = {
        search_categories: {
          room_events: {
            search_term: 'findme',
            order_by: 'recent',
            filter: { limit: 100 },
            include_state: false,
            event_context: context,
          },
        },
      };
      const answer = (await person.call('POST', '/search', body)).body as {
        search_categories?: { room_events: { results: { result: unknown }[] } };
      };
      return textOf(answer.search_categories?.room_events.results.map(({ result }) => result) ?? []);
    },
    expected: found,
  },
  'search, around what was found': {
    look: async (person) => {
      const context = { before_limit: 30, after_limit: 30, include_profile: true };
      const room_events = { search_term: 'findme', filter: { limit: 100 }, event_context: context };
      return textOf((await person.call('POST', '/search', { search_categories: { room_events } })).body);
    },
    expected: (look) => (found(look).length === 0 ? [] : history(look)),
  },
  getNotifications: {
    look: (person) => get(person, '/notifications', { limit: 100 }),
    expected: notified,
  },
  sync: {
    look: async (person) =>
      textOf((await person.sync(undefined, { filter: whole })).rooms ?? {}) +
      textOf((await person.sync(undefined, { filter: whole, use_state_after: true })).rooms ?? {}),
    expected: (look) => [...historyOfSync(look), ...nameAtJoin(look), ...nameBefore(look)],
  },
  'sync since before it all': {
    look: async (person, { tokens }) =>
      textOf((await person.sync(tokens.start, { filter: whole })).rooms ?? {}),
    expected: (look) => [...historyOfSync(look), ...nameAtJoin(look), ...nameBefore(look)],
  },
  'sliding sync': {
    look: async (person, { roomId }) => {
      const config = { timeline_limit: 100, required_state: [['*', '*']] };
      const { rooms } = await new SlidingClient(person).sync({
        lists: { all: { ranges: [[0, 99]], ...config } },
        room_subscriptions: { [roomId]: config },
      });
      return textOf(rooms);
    },
    // Those who left by themselves are not told of the room again; nobody looks into open rooms this way.
    expected: (look) =>
      ['left', 'declined'].includes(look.viewer) ? [] : [...historyOfSync(look), ...nameBefore(look)],
  },
  initialSync: {
    look: (person) => get(person, '/initialSync', { limit: 100, archived: true }),
    expected: (look) => (memberState(look).length === 0 ? [] : [...history(look), ...state(look)]),
  },
  roomInitialSync: {
    look: (person, story) => get(person, room(story, 'initialSync'), { limit: 100 }),
    expected: (look) => [...history(look), ...state(look)],
  },
  getEvents: {
    look: (person, { tokens }) => get(person, '/events', { from: tokens.start, timeout: 0 }),
    expected: historyOfStream,
  },
  peekEvents: {
    look: (person, { roomId, tokens }) =>
      get(person, '/events', { room_id: roomId, from: tokens.start, timeout: 0 }),
    expected: history,
  },
  getRoomSummary: {
    look: (person, { roomId }) => getPath(person, v1(`/room_summary/${enc(roomId)}`)),
    expected: nameForSummary,
  },
  getSpaceHierarchy: {
    look: async (person, { roomId, spaceId }) =>
      (await getPath(person, v1(`/rooms/${enc(spaceId)}/hierarchy`))) +
      (await getPath(person, v1(`/rooms/${enc(roomId)}/hierarchy`))),
    expected: nameForSummary,
  },
  getPublicRooms: { look: (person) => get(person, '/publicRooms'), expected: nothing },
  queryPublicRooms: {
    look: async (person) => textOf((await person.call('POST', '/publicRooms', {})).body),
    expected: nothing,
  },
  searchUserDirectory: {
    look: async (person) => (await person.call('POST', '/user_directory/search', { search_term: 'mk' })).raw,
    expected: nothing,
  },
  getUserProfile: {
    look: (person, { speaker }) => get(person, `/profile/${enc(speaker.id)}`),
    expected: nothing,
  },
  'thread subscriptions': {
    look: (person, story) =>
      forEach(
        roots(story).map(([part, id]) => [markOf(story.visibility, part, 'root'), id]),
        async (id, mark) => {
          const path = `/_matrix/client/unstable/io.element.msc4306${room(story, `thread/${enc(id)}/subscription`)}`;
          return (await person.ask('PUT', path, {})).status === 200 ? mark : '';
        },
      ),
    expected: (look) =>
      look.viewer === 'guest'
        ? []
        : history(look.viewer === 'ignoring' ? { ...look, viewer: 'stayed' } : look).filter((mark) =>
            mark.endsWith('root'),
          ),
  },
  'typing and receipts in syncs': {
    look: async (person, { visibility }) => {
      const text = JSON.stringify((await person.sync(undefined, { filter: whole })).rooms ?? {});
      const extensions = { typing: { enabled: true }, receipts: { enabled: true } };
      const lists = { all: { ranges: [[0, 99]], timeline_limit: 1, required_state: [] } };
      const sliding = (await new SlidingClient(person, 'ephemeral').sync({ lists, extensions })).extensions;
      const both = text + JSON.stringify(sliding);
      return ['typing', 'receipt']
        .filter((kind) => both.includes(`"m.${kind}"`))
        .map((kind) => markOf(visibility, 2, kind as Kind))
        .join(' ');
    },
    expected: (look) =>
      forMembers(look, [markOf(look.visibility, 2, 'typing'), markOf(look.visibility, 2, 'receipt')]),
  },
  getPresence: {
    look: async (person, { owner, visibility }) =>
      (await get(person, `/presence/${enc(owner.id)}/status`)) && markOf(visibility, 2, 'presence'),
    expected: (look) => forMembers(look, [markOf(look.visibility, 2, 'presence')]),
  },
  'presence in syncs': {
    look: async (person, { owner, visibility }) => {
      await owner.do('PUT', `/presence/${enc(owner.id)}/status`, { presence: 'online' });
      const { presence } = (await person.do('GET', '/sync')) as { presence?: unknown };
      return JSON.stringify(presence ?? {}).includes(owner.id) ? markOf(visibility, 2, 'presence') : '';
    },
    expected: (look) => forMembers(look, [markOf(look.visibility, 2, 'presence')]),
  },
  getLocalAliases: {
    look: async (person, story) => {
      const answer = await get(person, room(story, 'aliases'));
      return answer.includes(story.alias) ? markOf(story.visibility, 2, 'alias') : '';
    },
    expected: (look) => (canAskForAliases(look) ? [markOf(look.visibility, 2, 'alias')] : []),
  },
  getMutualRooms: {
    look: async (person, { owner, roomId, visibility }) => {
      const answer = await getPath(person, v1('/mutual_rooms'), { user_id: owner.id });
      return answer.includes(roomId) ? markOf(visibility, 2, 'mutual') : '';
    },
    expected: (look) => forMembers(look, [markOf(look.visibility, 2, 'mutual')]),
  },
  'delayed events': {
    look: async (person) =>
      (await getPath(person, '/_matrix/client/unstable/org.matrix.msc4140/delayed_events')) +
      (await getPath(person, v1('/delayed_events'))),
    expected: nothing,
  },
  'getRoomSummary at its old places': {
    look: async (person, { roomId }) =>
      (await getPath(person, `/_matrix/client/unstable/im.nheko.summary/rooms/${enc(roomId)}/summary`)) +
      (await getPath(person, `/_matrix/client/unstable/im.nheko.summary/summary/${enc(roomId)}`)),
    expected: nameForSummary,
  },
  'getEventByTimestamp at its old place': {
    look: (person, story) =>
      forEach(
        story.times.map((ts) => [String(ts), '']),
        async (_, ts) => {
          const path = `/_matrix/client/unstable/org.matrix.msc3030${room(story, 'timestamp_to_event')}`;
          return markOfId(story, await getPath(person, path, { ts, dir: 'f' }));
        },
      ),
    expected: firstOfParts,
  },
  'mutual rooms at their old place': {
    look: async (person, { owner, roomId, visibility }) => {
      const path = '/_matrix/client/unstable/uk.half-shot.msc2666/user/mutual_rooms';
      const answer = await getPath(person, path, { user_id: owner.id });
      return answer.includes(roomId) ? markOf(visibility, 2, 'mutual') : '';
    },
    expected: (look) => forMembers(look, [markOf(look.visibility, 2, 'mutual')]),
  },
  getAccountData: {
    look: (person, { owner }) => get(person, `/user/${enc(owner.id)}/account_data/org.example.private`),
    expected: nothing,
  },
  getAccountDataPerRoom: {
    look: (person, { owner, roomId }) =>
      get(person, `/user/${enc(owner.id)}/rooms/${enc(roomId)}/account_data/org.example.private`),
    expected: nothing,
  },
  getRoomTags: {
    look: (person, { owner, roomId }) => get(person, `/user/${enc(owner.id)}/rooms/${enc(roomId)}/tags`),
    expected: nothing,
  },
  getJoinedRooms: {
    look: async (person, { roomId, visibility }) =>
      (await get(person, '/joined_rooms')).includes(roomId) ? markOf(visibility, 2, 'mutual') : '',
    expected: (look) => forMembers(look, [markOf(look.visibility, 2, 'mutual')]),
  },
};
