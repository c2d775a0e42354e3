import assert from 'node:assert/strict';
import { EventTimeline, type MatrixEvent, Preset } from 'matrix-js-sdk';
import { after, before, test } from '../bounded-test.ts';
import { type ServerUnderTest, serverUnderTest } from '../server-under-test.ts';
import { Session } from './session.ts';

const messageCount = 60;

let server: ServerUnderTest;
let alice: Session;
let roomId: string;
const eventIds: string[] = [];
before(async () => {
  server = await serverUnderTest();
  alice = await Session.ofNewUser(server.url, 'alice');
  ({ room_id: roomId } = await alice.client.createRoom({ preset: Preset.PrivateChat }));
  await alice.room(roomId);
  for (let number = 0; number < messageCount; number++) {
    eventIds.push((await alice.client.sendTextMessage(roomId, `message ${number}`)).event_id);
  }
});
after(async () => {
  alice?.stop();
  await server?.stop();
});

function messageIds(events: readonly MatrixEvent[]): (string | undefined)[] {
  return events.filter((event) => event.getType() === 'm.room.message').map((event) => event.getId());
}

test('shows a new device the end of the timeline, and pages back to its beginning in order and without gaps', async (context) => {
  const device = await Session.ofLogin(server.url, alice.userId, 5);
  context.after(() => device.stop());
  const room = await device.room(roomId);
  assert.deepEqual(messageIds(room.getLiveTimeline().getEvents()), eventIds.slice(-5));
  while (room.getLiveTimeline().getPaginationToken(EventTimeline.BACKWARDS) !== null) {
    await device.client.scrollback(room, 17);
  }
  const events = room.getLiveTimeline().getEvents();
  assert.deepEqual(messageIds(events), eventIds);
  assert.equal(events[0]?.getType(), 'm.room.create');
});

test('opens the timeline around an event, and pages in both directions', async (context) => {
  const device = await Session.ofLogin(server.url, alice.userId, 1);
  context.after(() => device.stop());
  const room = await device.room(roomId);
  const timeline = await device.client.getEventTimeline(room.getUnfilteredTimelineSet(), eventIds[30]!);
  assert.ok(timeline);
  for (const backwards of [true, false]) {
    while (await device.client.paginateEventTimeline(timeline, { backwards, limit: 10 })) {
      const direction = backwards ? EventTimeline.BACKWARDS : EventTimeline.FORWARDS;
      if (timeline.getNeighbouringTimeline(direction)) break;
    }
  }
  const read = messageIds(timeline.getEvents());
  assert.deepEqual(read, eventIds.slice(0, read.length));
  assert.ok(read.length >= messageCount - 1);
});
