import { SlidingClient } from '../support/users/sliding-client.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';
import {
  type Access,
  eventStreamHistory,
  firstEventsOfPhases,
  mayListAliases,
  nameAtJoin,
  notifications,
  onlyForMembers,
  readableEvents,
  readableHistory,
  readableState,
  relatedEvents,
  searchResults,
  stateForMembers,
  strippedStateName,
  summaryName,
  syncedHistory,
  threadList,
} from './expectations.ts';
import { type Kind, markOf, phases, type Scenario } from './scenario.ts';

/** An endpoint that reads the room of a scenario. */
export interface Endpoint {
  /**
   * Returns everything that the endpoint shows of the scenario's room, in any form that contains the marks of the
   * events (`markOf`).
   */
  read(client: TestClient, scenario: Scenario): Promise<string>;
  /** Returns the marks that the result of `read` must contain; it must contain no others. */
  expected(access: Access): readonly string[];
}

type Query = Record<string, string | number | boolean>;

/** Returns the response body as text; errors count as an empty response. */
const get = (client: TestClient, path: string, query: Query = {}) =>
  getPath(client, `/_matrix/client/v3${path}`, query);

async function getPath(client: TestClient, path: string, query: Query = {}): Promise<string> {
  const { status, body } = await client.request('GET', path, undefined, query);
  return status === 200 ? textOf(body) : '';
}

/** Omits `prev_content`: a viewer of a state change has seen the replaced state. */
const textOf = (json: unknown) =>
  JSON.stringify(json, (key, value) => (key === 'prev_content' ? undefined : (value as unknown)));

const room = ({ roomId }: Scenario, rest: string) => `/rooms/${enc(roomId)}/${rest}`;
const v1 = (path: string) => `/_matrix/client/v1${path}`;

/** Sends one request for each event and joins the responses. */
async function forEach(
  events: Iterable<readonly [mark: string, eventId: string]>,
  read: (eventId: string, mark: string) => Promise<string>,
): Promise<string> {
  let texts = '';
  for (const [mark, eventId] of events) texts += `${await read(eventId, mark)}\n`;
  return texts;
}

/** The marks and ids of the root events: relations of the scenario lead only to these events. */
const roots = ({ visibility, events }: Scenario) =>
  phases.map((phase) => markOf(visibility, phase, 'root')).map((mark) => [mark, events.get(mark)!] as const);

/** Returns the mark of the event whose id the response contains. */
const markOfId = ({ events }: Scenario, text: string) => {
  const { event_id } = JSON.parse(text || '{}') as { event_id?: string };
  return [...events].find(([, eventId]) => eventId === event_id)?.[0] ?? '';
};

const fullTimeline = { room: { include_leave: true, timeline: { limit: 100 } } };

const noMarks = () => [];

/** Endpoints by the `operationId` of the specification, or by a description. */
export const endpoints: Readonly<Record<string, Endpoint>> = {
  getRoomEvents: {
    read: async (client, scenario) =>
      (await get(client, room(scenario, 'messages'), { dir: 'b', limit: 100 })) +
      (await get(client, room(scenario, 'messages'), { dir: 'f', limit: 100 })),
    expected: readableHistory,
  },
  'getRoomEvents from a token': {
    read: (client, scenario) =>
      get(client, room(scenario, 'messages'), { dir: 'b', limit: 100, from: scenario.tokens.end }),
    expected: readableHistory,
  },
  getOneRoomEvent: {
    read: (client, scenario) =>
      forEach(scenario.events, (id) => get(client, room(scenario, `event/${enc(id)}`))),
    expected: readableEvents,
  },
  getOneEvent: {
    read: (client, scenario) => forEach(scenario.events, (id) => get(client, `/events/${enc(id)}`)),
    expected: (access) => (access.viewer === 'guest' ? [] : readableEvents(access)),
  },
  getEventContext: {
    read: (client, scenario) =>
      forEach(
        [...scenario.events].filter(([mark]) => /root|state|member|edit/.test(mark)),
        (id) => get(client, room(scenario, `context/${enc(id)}`), { limit: 100 }),
      ),
    expected: (access) =>
      readableHistory(access).length === 0 ? [] : [...readableHistory(access), ...readableState(access)],
  },
  getEventByTimestamp: {
    read: (client, scenario) =>
      forEach(
        scenario.times.map((ts) => [String(ts), '']),
        async (_, ts) => {
          const path = v1(room(scenario, 'timestamp_to_event'));
          return markOfId(scenario, await getPath(client, path, { ts, dir: 'f' }));
        },
      ),
    expected: firstEventsOfPhases,
  },
  getRoomState: { read: (client, scenario) => get(client, room(scenario, 'state')), expected: readableState },
  getRoomStateWithKey: {
    read: async (client, scenario) => {
      const keys = phases.map((phase) => `state/org.example.state/phase${phase}`);
      let texts = '';
      for (const key of [...keys, 'state/m.room.name/']) texts += await get(client, room(scenario, key));
      return texts;
    },
    expected: (access) => readableState(access).filter((mark) => !mark.endsWith('member')),
  },
  getMembersByRoom: {
    read: (client, scenario) => get(client, room(scenario, 'members')),
    expected: (access) => readableState(access).filter((mark) => mark.endsWith('member')),
  },
  'getMembersByRoom at a token': {
    read: (client, scenario) => get(client, room(scenario, 'members'), { at: scenario.tokens.end }),
    expected: (access) => readableState(access).filter((mark) => mark.endsWith('member')),
  },
  getJoinedMembersByRoom: {
    read: (client, scenario) => get(client, room(scenario, 'joined_members')),
    expected: (access) =>
      onlyForMembers(
        access,
        stateForMembers(access).filter((mark) => mark.endsWith('member')),
      ),
  },
  getRelatingEvents: {
    read: (client, scenario) =>
      forEach(roots(scenario), (id) =>
        getPath(client, v1(room(scenario, `relations/${enc(id)}`)), { limit: 100 }),
      ),
    expected: relatedEvents,
  },
  getRelatingEventsWithRelType: {
    read: (client, scenario) =>
      forEach(roots(scenario), (id) =>
        getPath(client, v1(room(scenario, `relations/${enc(id)}/m.thread`)), { limit: 100 }),
      ),
    expected: (access) => relatedEvents(access).filter((mark) => /reply|late/.test(mark)),
  },
  getRelatingEventsWithRelTypeAndEventType: {
    read: (client, scenario) =>
      forEach(roots(scenario), (id) =>
        getPath(client, v1(room(scenario, `relations/${enc(id)}/m.annotation/m.reaction`)), { limit: 100 }),
      ),
    expected: (access) => relatedEvents(access).filter((mark) => mark.endsWith('reaction')),
  },
  getThreadRoots: {
    read: (client, scenario) => getPath(client, v1(room(scenario, 'threads')), { limit: 100 }),
    expected: threadList,
  },
  search: {
    read: async (client) => {
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
      const answer = (await client.call('POST', '/search', body)).body as {
        search_categories?: { room_events: { results: { result: unknown }[] } };
      };
      return textOf(answer.search_categories?.room_events.results.map(({ result }) => result) ?? []);
    },
    expected: searchResults,
  },
  'search with event context': {
    read: async (client) => {
      const context = { before_limit: 30, after_limit: 30, include_profile: true };
      const room_events = { search_term: 'findme', filter: { limit: 100 }, event_context: context };
      return textOf((await client.call('POST', '/search', { search_categories: { room_events } })).body);
    },
    expected: (access) => (searchResults(access).length === 0 ? [] : readableHistory(access)),
  },
  getNotifications: {
    read: (client) => get(client, '/notifications', { limit: 100 }),
    expected: notifications,
  },
  sync: {
    read: async (client) =>
      textOf((await client.sync(undefined, { filter: fullTimeline })).rooms ?? {}) +
      textOf((await client.sync(undefined, { filter: fullTimeline, use_state_after: true })).rooms ?? {}),
    expected: (access) => [...syncedHistory(access), ...nameAtJoin(access), ...strippedStateName(access)],
  },
  'sync from a token before the scenario': {
    read: async (client, { tokens }) =>
      textOf((await client.sync(tokens.start, { filter: fullTimeline })).rooms ?? {}),
    expected: (access) => [...syncedHistory(access), ...nameAtJoin(access), ...strippedStateName(access)],
  },
  'sliding sync': {
    read: async (client, { roomId }) => {
      const config = { timeline_limit: 100, required_state: [['*', '*']] };
      const { rooms } = await new SlidingClient(client).sync({
        lists: { all: { ranges: [[0, 99]], ...config } },
        room_subscriptions: { [roomId]: config },
      });
      return textOf(rooms);
    },
    // Sliding sync does not show rooms that the user has left voluntarily, nor world-readable rooms of
    // non-members.
    expected: (access) =>
      ['left', 'declined'].includes(access.viewer)
        ? []
        : [...syncedHistory(access), ...strippedStateName(access)],
  },
  initialSync: {
    read: (client) => get(client, '/initialSync', { limit: 100, archived: true }),
    expected: (access) =>
      stateForMembers(access).length === 0 ? [] : [...readableHistory(access), ...readableState(access)],
  },
  roomInitialSync: {
    read: (client, scenario) => get(client, room(scenario, 'initialSync'), { limit: 100 }),
    expected: (access) => [...readableHistory(access), ...readableState(access)],
  },
  getEvents: {
    read: (client, { tokens }) => get(client, '/events', { from: tokens.start, timeout: 0 }),
    expected: eventStreamHistory,
  },
  peekEvents: {
    read: (client, { roomId, tokens }) =>
      get(client, '/events', { room_id: roomId, from: tokens.start, timeout: 0 }),
    expected: readableHistory,
  },
  getRoomSummary: {
    read: (client, { roomId }) => getPath(client, v1(`/room_summary/${enc(roomId)}`)),
    expected: summaryName,
  },
  getSpaceHierarchy: {
    read: async (client, { roomId, spaceId }) =>
      (await getPath(client, v1(`/rooms/${enc(spaceId)}/hierarchy`))) +
      (await getPath(client, v1(`/rooms/${enc(roomId)}/hierarchy`))),
    expected: summaryName,
  },
  getPublicRooms: { read: (client) => get(client, '/publicRooms'), expected: noMarks },
  queryPublicRooms: {
    read: async (client) => textOf((await client.call('POST', '/publicRooms', {})).body),
    expected: noMarks,
  },
  searchUserDirectory: {
    read: async (client) => (await client.call('POST', '/user_directory/search', { search_term: 'mk' })).raw,
    expected: noMarks,
  },
  getUserProfile: {
    read: (client, { sender }) => get(client, `/profile/${enc(sender.id)}`),
    expected: noMarks,
  },
  'thread subscriptions': {
    read: (client, scenario) =>
      forEach(roots(scenario), async (id, mark) => {
        const path = `/_matrix/client/unstable/io.element.msc4306${room(scenario, `thread/${enc(id)}/subscription`)}`;
        return (await client.request('PUT', path, {})).status === 200 ? mark : '';
      }),
    expected: (access) =>
      access.viewer === 'guest'
        ? []
        : readableHistory(access.viewer === 'ignoring' ? { ...access, viewer: 'stayed' } : access).filter(
            (mark) => mark.endsWith('root'),
          ),
  },
  'typing and receipts in syncs': {
    read: async (client, { owner, roomId, visibility }) => {
      // Typing ends after two minutes, which a busy machine may have needed since the scenario.
      const typing = { typing: true, timeout: 120_000 };
      await owner.do('PUT', `/rooms/${enc(roomId)}/typing/${enc(owner.id)}`, typing);
      const text = JSON.stringify((await client.sync(undefined, { filter: fullTimeline })).rooms ?? {});
      const extensions = { typing: { enabled: true }, receipts: { enabled: true } };
      const lists = { all: { ranges: [[0, 99]], timeline_limit: 1, required_state: [] } };
      const sliding = (await new SlidingClient(client, 'ephemeral').sync({ lists, extensions })).extensions;
      const responses = text + JSON.stringify(sliding);
      return ['typing', 'receipt']
        .filter((kind) => responses.includes(`"m.${kind}"`))
        .map((kind) => markOf(visibility, 2, kind as Kind))
        .join(' ');
    },
    expected: (access) =>
      onlyForMembers(access, [
        markOf(access.visibility, 2, 'typing'),
        markOf(access.visibility, 2, 'receipt'),
      ]),
  },
  getPresence: {
    read: async (client, { owner, visibility }) =>
      (await get(client, `/presence/${enc(owner.id)}/status`)) && markOf(visibility, 2, 'presence'),
    expected: (access) => onlyForMembers(access, [markOf(access.visibility, 2, 'presence')]),
  },
  'presence in syncs': {
    read: async (client, { owner, visibility }) => {
      await owner.do('PUT', `/presence/${enc(owner.id)}/status`, { presence: 'online' });
      const { presence } = (await client.do('GET', '/sync')) as { presence?: unknown };
      return JSON.stringify(presence ?? {}).includes(owner.id) ? markOf(visibility, 2, 'presence') : '';
    },
    expected: (access) => onlyForMembers(access, [markOf(access.visibility, 2, 'presence')]),
  },
  getLocalAliases: {
    read: async (client, scenario) => {
      const answer = await get(client, room(scenario, 'aliases'));
      return answer.includes(scenario.alias) ? markOf(scenario.visibility, 2, 'alias') : '';
    },
    expected: (access) => (mayListAliases(access) ? [markOf(access.visibility, 2, 'alias')] : []),
  },
  getMutualRooms: {
    read: async (client, { owner, roomId, visibility }) => {
      const answer = await getPath(client, v1('/mutual_rooms'), { user_id: owner.id });
      return answer.includes(roomId) ? markOf(visibility, 2, 'mutual') : '';
    },
    expected: (access) => onlyForMembers(access, [markOf(access.visibility, 2, 'mutual')]),
  },
  'delayed events': {
    read: async (client) =>
      (await getPath(client, '/_matrix/client/unstable/org.matrix.msc4140/delayed_events')) +
      (await getPath(client, v1('/delayed_events'))),
    expected: noMarks,
  },
  'getRoomSummary under its unstable paths': {
    read: async (client, { roomId }) =>
      (await getPath(client, `/_matrix/client/unstable/im.nheko.summary/rooms/${enc(roomId)}/summary`)) +
      (await getPath(client, `/_matrix/client/unstable/im.nheko.summary/summary/${enc(roomId)}`)),
    expected: summaryName,
  },
  'getEventByTimestamp under its unstable path': {
    read: (client, scenario) =>
      forEach(
        scenario.times.map((ts) => [String(ts), '']),
        async (_, ts) => {
          const path = `/_matrix/client/unstable/org.matrix.msc3030${room(scenario, 'timestamp_to_event')}`;
          return markOfId(scenario, await getPath(client, path, { ts, dir: 'f' }));
        },
      ),
    expected: firstEventsOfPhases,
  },
  'mutual rooms under their unstable path': {
    read: async (client, { owner, roomId, visibility }) => {
      const path = '/_matrix/client/unstable/uk.half-shot.msc2666/user/mutual_rooms';
      const answer = await getPath(client, path, { user_id: owner.id });
      return answer.includes(roomId) ? markOf(visibility, 2, 'mutual') : '';
    },
    expected: (access) => onlyForMembers(access, [markOf(access.visibility, 2, 'mutual')]),
  },
  getAccountData: {
    read: (client, { owner }) => get(client, `/user/${enc(owner.id)}/account_data/org.example.private`),
    expected: noMarks,
  },
  getAccountDataPerRoom: {
    read: (client, { owner, roomId }) =>
      get(client, `/user/${enc(owner.id)}/rooms/${enc(roomId)}/account_data/org.example.private`),
    expected: noMarks,
  },
  getRoomTags: {
    read: (client, { owner, roomId }) => get(client, `/user/${enc(owner.id)}/rooms/${enc(roomId)}/tags`),
    expected: noMarks,
  },
  getJoinedRooms: {
    read: async (client, { roomId, visibility }) =>
      (await get(client, '/joined_rooms')).includes(roomId) ? markOf(visibility, 2, 'mutual') : '',
    expected: (access) => onlyForMembers(access, [markOf(access.visibility, 2, 'mutual')]),
  },
};
