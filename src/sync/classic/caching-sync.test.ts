import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { plainCaches } from '../../../test/support/servers/caches.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { enc, type SyncJson, TestClient } from '../../../test/support/users/test-client.ts';
import { noFilter } from '../../filters/compile-filter.ts';
import { CachingSync, type RepeatableRequest } from './caching-sync.ts';
import type { SyncAnswer } from './sync.ts';

const minute = 60_000;

describe('repeated GET /sync requests', () => {
  let server: TestServer;
  afterEach(() => server.stop());

  /** Starts a server that caches answers for `duration` milliseconds, with a room of Anna's. */
  const start = async (duration: number) => {
    const clock = manualClock();
    const config = { caches: { caches: { sync_response_cache_duration: duration } } };
    server = await startTestServer({ database: 'sqlite', config, clock });
    const anna = await TestClient.register(server, 'anna');
    const roomId = await anna.createRoom();
    return { clock, anna, roomId };
  };
  const secondDevice = async () => {
    const identifier = { type: 'm.id.user', user: 'anna' };
    const body = { type: 'm.login.password', identifier, password: 'correct horse' };
    const answer = (await server.api('POST', '/_matrix/client/v3/login', { body })).body;
    const [userId, deviceId] = [String(answer['user_id']), String(answer['device_id'])];
    return new TestClient(server, { userId, deviceId, token: String(answer['access_token']) });
  };
  const bodies = ({ rooms }: SyncJson, roomId: string) =>
    rooms?.join?.[roomId]?.timeline.events.map(({ content }) => content['body']).filter((body) => body);

  it('returns the same answer to a repeated GET /sync for the configured duration [option: caches.sync_response_cache_duration]', async () => {
    const { clock, anna, roomId } = await start(minute);
    const { next_batch } = await anna.sync();
    await anna.say(roomId, 'one');
    const first = await anna.sync(next_batch);
    await anna.say(roomId, 'two');
    assert.deepEqual(await anna.sync(next_batch), first);
    assert.deepEqual(bodies(await anna.sync(first.next_batch), roomId), ['two']);
    const otherFilter = { filter: { room: { timeline: { limit: 5 } } } };
    assert.deepEqual(
      bodies(await anna.sync(next_batch, otherFilter), roomId),
      ['one', 'two'],
      'another filter',
    );
    assert.deepEqual(
      bodies(await anna.sync(next_batch, { timeout: 1 }), roomId),
      ['one', 'two'],
      'another timeout',
    );
    const laptop = await secondDevice();
    assert.deepEqual(bodies(await laptop.sync(next_batch), roomId), ['one', 'two'], 'another device');
    clock.advance(minute + 1);
    assert.deepEqual(bodies(await anna.sync(next_batch), roomId), ['one', 'two'], 'later');
  });

  it('makes a new answer to a repeated first sync when the client has received the previous answer', async () => {
    const { anna, roomId } = await start(minute);
    await anna.sync();
    await anna.say(roomId, 'one');
    assert.deepEqual(bodies(await anna.sync(), roomId), ['one']);
  });

  it('makes a new answer to each repeated GET /sync when the duration is 0 [option: caches.sync_response_cache_duration]', async () => {
    const { anna, roomId } = await start(0);
    const { next_batch } = await anna.sync();
    await anna.say(roomId, 'one');
    await anna.sync(next_batch);
    await anna.say(roomId, 'two');
    assert.deepEqual(bodies(await anna.sync(next_batch), roomId), ['one', 'two']);
  });

  it('returns no cached answer with events of users who were ignored in the meantime', async () => {
    const { anna, roomId } = await start(minute);
    const ben = await TestClient.register(server, 'ben');
    await ben.join(roomId);
    const { next_batch } = await anna.sync();
    await ben.say(roomId, 'one');
    assert.deepEqual(bodies(await anna.sync(next_batch), roomId), ['one']);
    const list = { ignored_users: { [ben.id]: {} } };
    await anna.do('PUT', `/user/${enc(anna.id)}/account_data/m.ignored_user_list`, list);
    assert.deepEqual(bodies(await anna.sync(next_batch), roomId) ?? [], []);
  });
});

describe('repeated and simultaneous sync requests (CachingSync)', () => {
  const client = (wasSent: boolean) =>
    Object.assign(new AbortController(), { wasSent: Promise.resolve(wasSent) });
  const request = (more: Partial<RepeatableRequest> = {}): RepeatableRequest => ({
    userId: '@anna:test',
    deviceId: 'PHONE',
    tokenId: 1,
    filter: noFilter,
    filterText: undefined,
    timelineLimit: 10,
    stateAfter: undefined,
    since: undefined,
    timeout: 30_000,
    fullState: false,
    client: client(true),
    ...more,
  });

  /** Makes a `CachingSync` whose answers the test resolves. */
  const openSlowSyncs = (duration = minute) => {
    const answers: ((answer: SyncAnswer) => void)[] = [];
    const sync = {
      quietAnswer: () => undefined,
      sync: () => new Promise<SyncAnswer>((resolve) => answers.push(resolve)),
    };
    const clock = manualClock();
    const syncs = new CachingSync(sync, { clock, caches: plainCaches(clock) }, duration);
    return { answers, syncs };
  };

  it('returns one answer to identical simultaneous requests when the cache is disabled', async () => {
    const { answers, syncs } = openSlowSyncs(0);
    const requests = [syncs.sync(request()), syncs.sync(request()), syncs.sync(request({ timeout: 0 }))];
    assert.equal(answers.length, 2);
    for (const [index, answer] of answers.entries()) answer({ text: `${index}`, hasNewData: true });
    assert.deepEqual(await Promise.all(requests), ['0', '0', '1']);
    void syncs.sync(request());
    assert.equal(answers.length, 3);
  });

  it('makes a new answer for the second client when the first client has disconnected and its answer was cut short', async () => {
    const { answers, syncs } = openSlowSyncs();
    const controller = client(false);
    const first = syncs.sync(request({ client: controller }));
    const second = syncs.sync(request());
    controller.abort();
    answers[0]!({ text: 'cut short', hasNewData: false });
    assert.equal(await first, 'cut short');
    await new Promise(setImmediate);
    answers[1]!({ text: 'whole', hasNewData: true });
    assert.equal(await second, 'whole');
  });

  it('makes a new answer when the last answer had no new data', async () => {
    const { answers, syncs } = openSlowSyncs();
    for (const hasNewData of [false, true]) {
      const answer = syncs.sync(request({ since: 's1_1' }));
      answers.at(-1)!({ text: `${hasNewData}`, hasNewData });
      assert.equal(await answer, `${hasNewData}`);
    }
    assert.equal(await syncs.sync(request({ since: 's1_1' })), 'true');
  });

  it('returns the cached answer of a first sync until a client has received it', async () => {
    const { answers, syncs } = openSlowSyncs();
    const sync = async (wasSent: boolean) => {
      const before = answers.length;
      const answer = syncs.sync(request({ client: client(wasSent) }));
      answers[before]?.({ text: `${before}`, hasNewData: true });
      return answer;
    };
    assert.deepEqual([await sync(false), await sync(false), await sync(false)], ['0', '0', '0']);
    const { answers: secondAnswers, syncs: second } = openSlowSyncs();
    const first = second.sync(request({ client: client(true) }));
    secondAnswers[0]!({ text: 'first', hasNewData: true });
    assert.equal(await first, 'first');
    void second.sync(request());
    assert.equal(secondAnswers.length, 2);
  });

  it('limits the number of characters of cached answers', async () => {
    const { answers, syncs } = openSlowSyncs();
    const sync = async (since: string, length: number) => {
      const before = answers.length;
      const answer = syncs.sync(request({ since }));
      answers[before]?.({ text: 'x'.repeat(length), hasNewData: true });
      await answer;
      return answers.length > before;
    };
    const size = 7 * 1024 * 1024;
    for (const since of ['a', 'b', 'c', 'd', 'e']) assert.equal(await sync(since, size), true);
    assert.equal(await sync('e', size), false);
    assert.equal(await sync('a', size), true, 'the oldest answer was dropped');
    assert.equal(await sync('f', 9 * 1024 * 1024), true);
    assert.equal(await sync('f', 9 * 1024 * 1024), true, 'an answer above the maximum length is not cached');
  });
});
