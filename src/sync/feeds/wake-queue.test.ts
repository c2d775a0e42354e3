import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { type ManualClock, manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { Feed } from './feed.ts';
import { WakeQueue } from './wake-queue.ts';

/** A feed with a request that waits again each time it is woken; counts how often it is woken. */
class WaitingRequest {
  readonly feed = new Feed('@waiting:test', 0);
  woken = 0;

  constructor() {
    this.feed.onChange(() => this.#wake());
  }

  #wake(): void {
    this.woken++;
    this.feed.onChange(() => this.#wake());
  }
}

const waitingRequests = (count: number) => Array.from({ length: count }, () => new WaitingRequest());
const feedsOf = (all: readonly WaitingRequest[]) => all.map(({ feed }) => feed);
const totalWoken = (all: readonly WaitingRequest[]) => all.reduce((total, { woken }) => total + woken, 0);
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('WakeQueue wakes requests a few at a time', () => {
  let clock: ManualClock;
  let rooms: Map<string, WaitingRequest[]>;
  let waking: WakeQueue;
  beforeEach(() => {
    clock = manualClock();
    rooms = new Map();
    waking = new WakeQueue(clock, (roomId) => feedsOf(rooms.get(roomId) ?? []));
  });

  /** Makes a room with one feed. */
  const inRoom = (roomId: string) => {
    const request = new WaitingRequest();
    rooms.set(roomId, [request]);
    return request;
  };

  it('wakes 1,000 feeds in several turns of the event loop, 32 feeds in each', async () => {
    const all = waitingRequests(1_000);
    waking.wake(feedsOf(all));
    const counts = [totalWoken(all)];
    while (totalWoken(all) < all.length) {
      await turn();
      counts.push(totalWoken(all));
      assert.ok(counts.length <= all.length, 'a feed was never woken');
    }
    const slices = counts.map((count, index) => count - (counts[index - 1] ?? 0));
    assert.deepEqual(slices, [...Array(31).fill(32), 8]);
    assert.deepEqual(new Set(all.map(({ woken }) => woken)), new Set([1]));
  });

  it('wakes 10 feeds without waiting for a turn of the event loop', () => {
    const all = waitingRequests(10);
    waking.wake(feedsOf(all));
    assert.equal(totalWoken(all), 10);
  });

  it('wakes the feeds that were due first, although other feeds become due in every turn', async () => {
    const [first, later] = [waitingRequests(200), waitingRequests(200)];
    waking.wake(feedsOf(first));
    for (let turns = 0; totalWoken(first) < first.length; turns++) {
      waking.wake(feedsOf(later));
      await turn();
      assert.ok(turns < 200, 'the feeds that were due first were never woken');
    }
  });

  it('wakes a feed once when it is due for several reasons', async () => {
    const all = waitingRequests(300);
    waking.wake(feedsOf(all));
    const notYetWoken = all.filter(({ woken }) => woken === 0);
    assert.ok(notYetWoken.length > 0);
    waking.wake(feedsOf(notYetWoken));
    rooms.set('!room', notYetWoken);
    waking.wakeRoom('!room', 5, 5);
    for (let turns = 0; turns < 50; turns++) await turn();
    assert.deepEqual(new Set(all.map(({ woken }) => woken)), new Set([1]));
  });

  it('wakes the feeds of a room once for several messages that are written together', () => {
    const request = inRoom('!room');
    waking.wakeRoom('!room', 5, 7);
    waking.wakeRoom('!room', 6, 7);
    assert.equal(request.woken, 0);
    waking.wakeRoom('!room', 7, 7);
    assert.equal(request.woken, 1);
    clock.advance(1_000);
    assert.equal(request.woken, 1);
  });

  it('wakes the feeds of a room after 10 ms when the awaited event is never published', () => {
    const request = inRoom('!room');
    waking.wakeRoom('!room', 5, 7);
    clock.advance(5);
    assert.equal(request.woken, 0);
    clock.advance(20);
    assert.equal(request.woken, 1);
    clock.advance(1_000);
    assert.equal(request.woken, 1);
    waking.wakeRoom('!room', 8, 8);
    assert.equal(request.woken, 2);
  });

  it('waits for the newest event of a room when it is about to be published, and not for later events', () => {
    const request = inRoom('!room');
    for (let position = 1; position <= 100; position++) {
      waking.wakeRoom('!room', position, position + 1);
      assert.equal(request.woken, Math.floor(position / 2), `at ${position}`);
    }
    clock.advance(1_000);
    assert.equal(request.woken, 50);
  });

  it('wakes the feeds of a room also when a later event than the awaited event is published first', () => {
    const request = inRoom('!room');
    waking.wakeRoom('!room', 5, 7);
    waking.wakeRoom('!room', 9, 20);
    assert.equal(request.woken, 1);
  });

  it("wakes the feeds of the room's members at the time of waking, and no feeds of other rooms", () => {
    const [held, free] = [inRoom('!held'), inRoom('!free')];
    waking.wakeRoom('!held', 5, 7);
    waking.wakeRoom('!free', 6, 6);
    assert.deepEqual([held.woken, free.woken], [0, 1]);
    const laterMember = inRoom('!held');
    waking.wakeRoom('!held', 7, 7);
    assert.deepEqual([held.woken, laterMember.woken, free.woken], [0, 1, 1]);
    waking.wakeRoom('!empty', 8, 8);
  });
});
