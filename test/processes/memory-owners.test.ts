import assert from 'node:assert/strict';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { getHeapSnapshot } from 'node:v8';
import { CacheRegistry, cachesSection } from '../../src/kernel/caches/index.ts';
import { mapConcurrently } from '../../src/kernel/map-concurrently.ts';
import { HearthProcess } from '../clients/hearth-process.ts';
import { manualClock } from '../support/clocks/manual-clock.ts';
import { HeapGraph } from '../support/heap/heap-graph.ts';
import { type LargeCollection, largeCollections } from '../support/heap/large-collections.ts';
import { sectionDefaults } from '../support/inputs/section-defaults.ts';

describe('largeCollections', () => {
  class Service {
    readonly cached = new CacheRegistry(
      manualClock(),
      sectionDefaults(cachesSection, { caches: { global_factor: 1 } }),
    ).create<string, number[]>('test', { size: 2_000 });
    readonly #map = new Map<string, object>();
    readonly #set = new Set<string>();
    readonly #list: string[] = [];
    readonly #object: Record<string, object> = {};

    fill(): this {
      for (let index = 0; index < 1_000; index++) {
        const key = `entry ${index}`;
        this.cached.set(key, []);
        this.#map.set(key, {});
        this.#set.add(key);
        this.#list.push(key);
        this.#object[key] = {};
      }
      this.cached.set('many', new Array(1_000).fill(1));
      return this;
    }
  }

  it('finds maps, sets, arrays and objects that belong to no cache, and leaves out what caches hold', async () => {
    const service = new Service().fill();
    const chunks: Buffer[] = [];
    for await (const chunk of getHeapSnapshot()) chunks.push(chunk as Buffer);
    const collections = largeCollections(new HeapGraph(Buffer.concat(chunks).toString()), 500);
    const holdersInService = collections
      .flatMap(({ holders }) => holders)
      .filter((holder) => holder.startsWith('Service.'));
    assert.deepEqual(holdersInService.sort(), [
      'Service.#list',
      'Service.#map',
      'Service.#object',
      'Service.#set',
    ]);
    assert.equal(service.cached.size, 1_001);
  });
});

/** Number of users, each of whom has a device, a room and messages. */
const userCount = 150;

/** Number of entries that a collection may have, by the estimate of `largeCollections`. */
const maxEntries = 128;

/** Collections that grow with the users or rooms in use although they are not caches, each with what bounds it. */
const exceptions: Readonly<Record<string, string>> = {
  'cachedKeys in a closure':
    'JSON texts of short keys; no more are added after a maximum number (canonical-json.ts)',
  'SqliteConnection.#prepared': 'prepared statements of one connection, at most 500',
  'SessionCache.#tokensOf':
    'index of the cache of sessions; an entry is removed together with the entry of the cache',
  'Feeds.#listeners': 'index of the cache of feeds; an entry is removed together with the entry of the cache',
  'Feeds.#listeners[][]': 'the feeds in one room of that index',
  'PriorityQueue.#heap':
    'one entry of Node.js for each duration of pending timers; the users and requests with timers are in other collections',
  'WritableHeads.#headRefs': 'weak references to heads of rooms, removed when the head was collected',
  'RateLimiter.#buckets': 'bounded by its own maximum; forgetting callers earlier would lift their limits',
  'LastSeen.#pending': 'activity of at most 10,000 devices, written and removed each minute',
  'UserVisits.#pending':
    'at most 10,000 users who were active for the first time on this day, written each minute',
  'Presence.#users': 'users who are online or were online lately; offline users are removed by their timer',
  'PresenceWriter.#unwritten': 'presence that is about to be written',
  'PresenceEvents.#joins.#positions': 'the last 50,000 joins in memory, for presence in /sync',
  'PresenceEvents.#joins.#changes': 'as above',
  'PresenceEvents.#recent.#positions': 'the last 50,000 changes of presence',
  'PresenceEvents.#recent.#changes': 'as above',
  'Typing.#rooms': 'users who type, at most 100,000, removed by their timeout',
  'Typing.#rooms[][]': 'the users who type in one room, at most 100',
  'TypingEduSender.#repeatTimers': 'a timer for each local user who types',
  'DeviceLists.#changes.#positions': 'the newest changes of device lists, at most twice their capacity',
  'DeviceLists.#changes.#changes': 'as above',
  'MembershipHistory.#recent.#positions': 'the newest joins and leaves, at most twice their capacity',
  'MembershipHistory.#recent.#changes': 'as above',
};

describe('memory of a server after a load', { timeout: 600_000 }, () => {
  let server: HearthProcess;
  before(async () => {
    server = await HearthProcess.create();
    process.env['NODE_OPTIONS'] = '--heapsnapshot-signal=SIGUSR2';
    await server.start().finally(() => delete process.env['NODE_OPTIONS']);
  });
  after(() => server.remove());

  /** Writes a heap snapshot of the server and finds the large collections in it. */
  async function collections(): Promise<LargeCollection[]> {
    process.kill(server.pid!, 'SIGUSR2');
    for (;;) {
      await sleep(200);
      const name = readdirSync(server.directory).find((file) => file.endsWith('.heapsnapshot'));
      if (name === undefined) continue;
      const path = join(server.directory, name);
      const text = readFileSync(path, 'utf8');
      // Skips an unfinished snapshot: it rarely ends with a brace, and parsing it as JSON would take a second.
      if (!text.trimEnd().endsWith('}')) continue;
      try {
        const graph = new HeapGraph(text);
        rmSync(path);
        return largeCollections(graph, maxEntries + 1);
      } catch (error) {
        // The snapshot is being written.
        if (!(error instanceof SyntaxError)) throw error;
      }
    }
  }

  async function call(token: string | undefined, method: string, path: string, body?: unknown) {
    const response = await fetch(`${server.url}/_matrix/client/v3${path}`, {
      method,
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const answer = (await response.json()) as Record<string, string>;
    assert.equal(response.status, 200, `${method} ${path}: ${JSON.stringify(answer)}`);
    return answer;
  }

  /**
   * Sends the requests of one user.
   * @param sharedRoom a public room
   */
  async function sendRequestsOfUser(index: number, sharedRoom: string): Promise<void> {
    const { access_token: token, user_id: userId } = await call(undefined, 'POST', '/register', {
      username: `user${index}`,
      password: `password ${index}`,
      auth: { type: 'm.login.dummy' },
    });
    const { room_id: ownRoom } = await call(token, 'POST', '/createRoom', { preset: 'public_chat' });
    await call(token, 'POST', `/join/${encodeURIComponent(sharedRoom)}`, {});
    const { next_batch: since } = await call(token, 'GET', '/sync?timeout=0');
    for (const room of [ownRoom!, sharedRoom].map(encodeURIComponent)) {
      const content = { msgtype: 'm.text', body: `hello ${index}` };
      const { event_id: eventId } = await call(token, 'PUT', `/rooms/${room}/send/m.room.message/1`, content);
      await call(token, 'POST', `/rooms/${room}/receipt/m.read/${encodeURIComponent(eventId!)}`, {});
      await call(token, 'PUT', `/rooms/${room}/typing/${userId}`, { typing: true, timeout: 30_000 });
      await call(token, 'GET', `/rooms/${room}/messages?dir=b`);
    }
    await call(token, 'PUT', `/user/${userId}/account_data/org.test`, { index });
    await call(token, 'PUT', `/profile/${userId}/displayname`, { displayname: `User ${index}` });
    await call(token, 'PUT', `/presence/${userId}/status`, { presence: 'online' });
    await call(token, 'POST', `/user/${userId}/filter`, { room: { timeline: { limit: index + 1 } } });
    await call(token, 'POST', '/keys/query', { device_keys: { '@user0:hearth.test': [] } });
    await call(token, 'PUT', `/sendToDevice/m.test/${index}`, {
      messages: { [userId!]: { '*': { index } } },
    });
    await call(token, 'POST', '/user_directory/search', { search_term: `user${index}` });
    await call(token, 'GET', `/sync?timeout=0&since=${since}`);
  }

  it('keeps no collection that grows with its users outside of registered caches, apart from listed exceptions', {
    timeout: 600_000,
  }, async () => {
    const { access_token: token } = await call(undefined, 'POST', '/register', {
      username: 'owner',
      password: 'password of the owner',
      auth: { type: 'm.login.dummy' },
    });
    const { room_id: sharedRoom } = await call(token, 'POST', '/createRoom', { preset: 'public_chat' });
    // Afterwards all code and data that the first user needs are loaded.
    await sendRequestsOfUser(userCount, sharedRoom!);
    const holdersBefore = new Set((await collections()).flatMap(({ holders }) => holders));
    await mapConcurrently(
      Array.from({ length: userCount }, (_, index) => index),
      8,
      (index) => sendRequestsOfUser(index, sharedRoom!),
    );
    const newCollections = (await collections()).filter(
      ({ holders }) => !holders.some((holder) => holdersBefore.has(holder)),
    );
    const unexpected = newCollections.filter(
      ({ holders }) => !holders.some((holder) => holder in exceptions),
    );
    const descriptions = unexpected.map(
      ({ entries, holders, path }) => `${entries} entries: ${[...new Set(holders)].join(', ')}\n    ${path}`,
    );
    assert.deepEqual(
      descriptions,
      [],
      `Collections that no cache of the registry holds:\n${descriptions.join('\n')}`,
    );
  });
});
