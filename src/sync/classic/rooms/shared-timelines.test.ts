import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases, type OpenDatabase } from '../../../../test/support/databases/databases.ts';
import { alice, bob, type RoomsTuning, RoomsUnderTest } from '../../../../test/support/rooms/rooms.ts';
import { EventText } from './event-text.ts';
import { SharedTimeline, SharedTimelines } from './shared-timelines.ts';

/** Opens a room with two members, and its shared timelines. */
async function openTimelines(open: OpenDatabase, tuning: RoomsTuning = {}) {
  const fixture = await RoomsUnderTest.open(open, [], tuning);
  const { streams, engine } = fixture;
  const text = new EventText(fixture.rooms.clientEvents);
  const timelines = new SharedTimelines(text, engine.retention);
  const roomId = await fixture.room(alice, bob);
  const head = await engine.heads.get(roomId);
  assert.ok(head);
  const find = async (after: number, upTo = streams.current) => timelines.find(head, { after, upTo });
  const say = (body: string) => fixture.say(alice, roomId, body);
  return { fixture, roomId, head, timelines, find, say };
}

/** Returns the events of a timeline as clients receive them. */
const eventsOf = (timeline: unknown): { content: { body?: string }; unsigned: Record<string, unknown> }[] => {
  assert.ok(timeline instanceof SharedTimeline);
  return JSON.parse(timeline.text(0)).events;
};

const bodies = (timeline: unknown) => eventsOf(timeline).map(({ content }) => content.body);

forSelectedDatabases(import.meta.url, (open) => {
  describe('SharedTimelines makes timelines once for all members', () => {
    it('makes one timeline for all clients at the same position', async () => {
      const { fixture, find, say } = await openTimelines(open);
      const first = fixture.streams.current;
      await say('one');
      const second = fixture.streams.current;
      await say('two');
      const timeline = await find(first);
      assert.deepEqual(bodies(timeline), ['one', 'two']);
      assert.deepEqual(bodies(await find(second)), ['two']);
      assert.equal(await find(first), timeline);
      await say('three');
      assert.deepEqual(bodies(await find(first)), ['one', 'two', 'three']);
    });

    it('leaves out events after the range', async () => {
      const { fixture, find, say } = await openTimelines(open);
      const before = fixture.streams.current;
      await say('one');
      const upTo = fixture.streams.current;
      await say('two');
      assert.deepEqual(bodies(await find(before, upTo)), ['one']);
      assert.deepEqual(bodies(await find(before)), ['one', 'two']);
      assert.equal(await find(upTo, upTo), undefined);
    });

    it('makes a cached timeline again when an event outside of the timeline redacts one of its events', async () => {
      const { fixture, head, find, say } = await openTimelines(open);
      const before = fixture.streams.current;
      await say('one');
      const redactionPosition = fixture.streams.current;
      const [target] = head.recent.slice(-1);
      await say('two');
      assert.deepEqual(bodies(await find(before)), ['one', 'two']);
      head.redact(target!, redactionPosition);
      assert.deepEqual(bodies(await find(before)), [undefined, 'two']);
      head.revise({ ...target!, softFailed: true });
      assert.equal(await find(before), undefined);
    });

    it('returns no timeline for a range that contains state events, hidden events or more than fifty events', async () => {
      const { fixture, roomId, find, say } = await openTimelines(open);
      let before = fixture.streams.current;
      const host = { userId: alice, deviceId: 'DEVICE' };
      const topic = { type: 'm.room.topic', stateKey: '' };
      await fixture.rooms.sending.state(host, roomId, topic, { topic: 'news' });
      await say('one');
      assert.equal(await find(before), undefined);
      before = fixture.streams.current;
      await fixture.send(alice, roomId, 'org.proto.dummy_event', {});
      assert.equal(await find(before), undefined);
      before = fixture.streams.current;
      for (let count = 0; count < 50; count++) await say(`${count}`);
      assert.equal(bodies(await find(before)).length, 50);
      await say('one more');
      assert.equal(await find(before), undefined);
      assert.equal(await find(0), undefined);
    });

    it('limits the number of cached timelines, and makes a dropped timeline again', async () => {
      const { fixture, find, say } = await openTimelines(open);
      const positions = [fixture.streams.current];
      for (let count = 0; count < 40; count++) {
        await say(`${count} ${'x'.repeat(5_000)}`);
        positions.push(fixture.streams.current);
      }
      const [oldest] = positions;
      const first = await find(oldest!);
      for (const [index, position] of positions.slice(0, -1).entries())
        assert.equal(bodies(await find(position)).length, 40 - index);
      const afterEviction = await find(oldest!);
      assert.notEqual(afterEviction, first);
      assert.deepEqual(eventsOf(afterEviction), eventsOf(first));
    });

    it('returns no timeline when its events cannot be rendered', async () => {
      const { fixture, roomId, head, timelines, say } = await openTimelines(open, { eventCacheSize: 2 });
      const before = fixture.streams.current;
      const target = await say('one');
      await fixture.redact(alice, roomId, target);
      for (const body of ['two', 'three', 'four']) await say(body);
      await fixture.database.close();
      for (let time = 0; time < 2; time++) {
        const timeline = timelines.find(head, { after: before, upTo: fixture.streams.current });
        assert.ok(timeline instanceof Promise);
        assert.equal(await timeline, undefined);
      }
    });
  });
});
