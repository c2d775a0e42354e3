import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { costAfterRetries, exceeds } from '../support/clocks/thread-cost.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { enc } from '../support/users/test-client.ts';
import { members, openStoredData, type StoredData, type StoredDataRequest } from './stored-data.ts';

/**
 * Returns the maximum milliseconds of CPU for a response: `total` on the main thread, `process` on all threads, `longest`
 * in one turn of the event loop. The receiving client is a part of this process, so its CPU time counts as well.
 */
const allowedFor = (mebibytes: number) => ({
  total: 200 + 15 * mebibytes,
  process: 200 + 40 * mebibytes,
  longest: 50,
});

const mebibyte = 2 ** 20;

const client = '/_matrix/client/v3';

/** @param attempt number of the repetition, for limits and ids that must differ between requests */
type RequestOf = (data: StoredData, attempt: number) => StoredDataRequest;

const get =
  (pathOf: (data: StoredData, attempt: number) => string): RequestOf =>
  (data, attempt) => ({ path: pathOf(data, attempt) });

const ofLargeRoom = (rest: string) => get(({ largeRoom }) => `${client}/rooms/${enc(largeRoom)}${rest}`);
const ofBusyRoom = (rest: string) => get(({ busyRoom }) => `${client}/rooms/${enc(busyRoom)}${rest}`);

const filterOf = (room: object) => enc(JSON.stringify({ room }));

const syncOf = (since: (data: StoredData) => string | undefined, room: (attempt: number) => object) =>
  get((data, attempt) => {
    const token = since(data);
    return `${client}/sync?timeout=0&filter=${filterOf(room(attempt))}${token === undefined ? '' : `&since=${token}`}`;
  });

const slidingSync =
  (list: object): RequestOf =>
  (_, attempt) => ({
    method: 'POST',
    path: '/_matrix/client/unstable/org.matrix.simplified_msc3575/sync?timeout=0',
    body: { conn_id: `connection${attempt}`, lists: { all: { ranges: [[0, 1_000]], ...list } } },
  });

const requests: Readonly<Record<string, RequestOf>> = {
  'a first sync of hundreds of rooms': syncOf(
    () => undefined,
    (attempt) => ({ timeline: { limit: 10 + attempt } }),
  ),
  'a first sync with lazy loading': syncOf(
    () => undefined,
    (attempt) => ({ timeline: { limit: 20 + attempt }, state: { lazy_load_members: true } }),
  ),
  'a first sync with 1,000 events of each room': syncOf(
    () => undefined,
    (attempt) => ({ timeline: { limit: 1_000 - attempt } }),
  ),
  'a sync with 100 large new events': syncOf(
    ({ early }) => early,
    (attempt) => ({ timeline: { limit: 100 + attempt } }),
  ),
  'a sync with the whole state': get(
    ({ early }) => `${client}/sync?timeout=0&since=${early}&full_state=true`,
  ),
  'a sliding sync of all rooms': slidingSync({ timeline_limit: 20, required_state: [['*', '*']] }),
  'a sliding sync of all rooms with members of the timeline': slidingSync({
    timeline_limit: 50,
    required_state: [
      ['m.room.member', '$LAZY'],
      ['m.room.name', ''],
    ],
  }),
  initialSync: get((_, attempt) => `${client}/initialSync?limit=${20 + attempt}`),
  'initialSync of a room with large events': ofLargeRoom('/initialSync?limit=100'),
  'the state of a room with large events': ofLargeRoom('/state'),
  'the last 1,000 messages of a room with large events': ofLargeRoom('/messages?dir=b&limit=1000'),
  'the context of a large event': get(
    ({ largeRoom, lastLargeMessage }) =>
      `${client}/rooms/${enc(largeRoom)}/context/${enc(lastLargeMessage)}?limit=200`,
  ),
  'the members of a room': ofBusyRoom('/members'),
  'the joined members of a room': ofBusyRoom('/joined_members'),
  'the last 1,000 messages of a room with many replies': ofBusyRoom('/messages?dir=b&limit=1000'),
  'the replies of an event': get(
    ({ busyRoom, busyEvent }) =>
      `/_matrix/client/v1/rooms/${enc(busyRoom)}/relations/${enc(busyEvent)}?limit=1000`,
  ),
  'the reactions of an event': get(
    ({ busyRoom, busyEvent }) =>
      `/_matrix/client/v1/rooms/${enc(busyRoom)}/relations/${enc(busyEvent)}/m.annotation?limit=1000`,
  ),
  'the threads of a room': get(
    ({ busyRoom }) => `/_matrix/client/v1/rooms/${enc(busyRoom)}/threads?limit=1000`,
  ),
  'the hierarchy of a space': get(
    ({ space }, attempt) => `/_matrix/client/v1/rooms/${enc(space)}/hierarchy?limit=${900 + attempt}`,
  ),
  'a search in all rooms': (_, attempt) => ({
    method: 'POST',
    path: `${client}/search`,
    body: {
      search_categories: {
        room_events: {
          search_term: 'everything',
          filter: { limit: 100 + attempt },
          event_context: { before_limit: 10, after_limit: 10 },
          groupings: { group_by: [{ key: 'room_id' }, { key: 'sender' }] },
        },
      },
    },
  }),
  notifications: get((_, attempt) => `${client}/notifications?limit=${900 + attempt}`),
  'the joined rooms': get(() => `${client}/joined_rooms`),
  'the public rooms': get((_, attempt) => `${client}/publicRooms?limit=${900 + attempt}`),
  'public rooms by a term': (_, attempt) => ({
    method: 'POST',
    path: `${client}/publicRooms`,
    body: { limit: 900 + attempt, filter: { generic_search_term: 'room' } },
  }),
  'users by a term': () => ({
    method: 'POST',
    path: `${client}/user_directory/search`,
    body: { search_term: 'member', limit: 1_000 },
  }),
  'the push rules': get(() => `${client}/pushrules/`),
  'account data': get(({ user }) => `${client}/user/${enc(user.id)}/account_data/org.example.large1`),
  'a message that the push rules of all members decide about': ({ busyRoom }, attempt) => ({
    method: 'PUT',
    path: `${client}/rooms/${enc(busyRoom)}/send/m.room.message/cost${attempt}`,
    body: { msgtype: 'm.text', body: 'long pattern' },
  }),
  events: get(({ early }) => `${client}/events?timeout=0&from=${early}`),
  whois: get(({ user }) => `${client}/admin/whois/${enc(user.id)}`),
  'the keys of all members': () => ({
    method: 'POST',
    path: `${client}/keys/query`,
    body: {
      device_keys: Object.fromEntries(
        Array.from({ length: members }, (_, index) => [`@member${index}:a.test`, []]),
      ),
    },
  }),
};

const ofFederation = (pathOf: (data: StoredData, attempt: number) => string) =>
  get((data, attempt) => `/_matrix/federation/v1${pathOf(data, attempt)}`);

const federationRequests: Readonly<Record<string, RequestOf>> = {
  'the state of a room with large events': ofFederation(
    ({ largeRoom, lastLargeMessage }) => `/state/${enc(largeRoom)}?event_id=${enc(lastLargeMessage)}`,
  ),
  'the state ids of a room': ofFederation(
    ({ largeRoom, lastLargeMessage }) => `/state_ids/${enc(largeRoom)}?event_id=${enc(lastLargeMessage)}`,
  ),
  'a backfill of large events': ofFederation(
    ({ largeRoom, lastLargeMessage }) => `/backfill/${enc(largeRoom)}?limit=100&v=${enc(lastLargeMessage)}`,
  ),
  'the events between two large events': ({ largeRoom, lastLargeMessage }) => ({
    method: 'POST',
    path: `/_matrix/federation/v1/get_missing_events/${enc(largeRoom)}`,
    body: { earliest_events: [], latest_events: [lastLargeMessage], limit: 100 },
  }),
  'the auth chain of an event': ofFederation(
    ({ largeRoom, lastLargeMessage }) => `/event_auth/${enc(largeRoom)}/${enc(lastLargeMessage)}`,
  ),
  'the hierarchy of a space': ofFederation(({ space }) => `/hierarchy/${enc(space)}`),
  'the public rooms': ofFederation((_, attempt) => `/publicRooms?limit=${900 + attempt}`),
};

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('requests for much stored data', () => {
    let data: StoredData;
    before(async () => {
      data = await openStoredData(kind);
    });
    after(() => data.stop());

    for (const [list, send, origin] of [
      [requests, 'send', 'a client'],
      [federationRequests, 'sendAsServer', 'another server'],
    ] as const) {
      for (const [what, requestOf] of Object.entries(list)) {
        it(`answers ${origin} (${what}) in turns of at most 50 ms, with 200 ms of CPU on the main thread and 15 more for each mebibyte of the response`, async () => {
          let attempt = 0;
          let bytes = 0;
          const requestOnce = async () => {
            const response = await data[send](requestOf(data, attempt++));
            assert.equal(response.status, 200, response.start);
            bytes = response.bytes;
          };
          // The first response compiles code and shows how many bytes the limits are for.
          await requestOnce();
          const allowed = allowedFor(bytes / mebibyte);
          const cost = await costAfterRetries(allowed, requestOnce);
          const { total, longest, process } = cost;
          assert.ok(
            !exceeds(cost, allowed),
            `${Math.round(total)} ms on the main thread, ${Math.round(process)} on all threads, ${Math.round(longest)} at a time for ${bytes} bytes`,
          );
        });
      }
    }
  });
});
