import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Conversations } from '../../src/composition/conversations.ts';
import { roomRows } from '../../src/composition/rooms.ts';
import type { JsonObject } from '../../src/protocol/index.ts';
import { RoomPurge } from '../../src/rooms/index.ts';
import { RedactionRetention } from '../../src/rooms/redactions/redaction-retention.ts';
import { alice, bob, deviceId, message, send, TwoProcesses } from './two-processes.ts';

const bodyOf = ({ content }: JsonObject) => (content as JsonObject)['body'];

describe('the caches of a reader process', () => {
  it('a reader process drops from its caches the rooms and contents that the main process deletes: forgotten and purged rooms, and the content of redacted events', async () => {
    const processes = await new TwoProcesses().open();
    try {
      const { kernel, rooms } = processes.writer;
      const roomId = await rooms.creation.create(alice, { preset: 'public_chat' });
      await rooms.memberships.join(bob, roomId);
      const secret = await send(processes.writer, alice, roomId, message('a secret'));
      await rooms.sending.redact({ userId: alice, deviceId }, roomId, secret, {}, 'redaction');
      await processes.assertAlike('a redaction');
      const { engine } = processes.reader.rooms;
      const storedText = async () => JSON.stringify((await engine.events.getById(secret))?.event.pdu);
      assert.match(await storedText(), /a secret/);

      let prune: (context: { signal: AbortSignal }) => Promise<void>;
      const jobs = {
        every: (_name: string, _interval: number, { run }: { run: typeof prune }) => (prune = run),
      };
      new RedactionRetention({ ...kernel, jobs: jobs as never, engine: rooms.engine, period: 0 });
      const { signal } = new AbortController();
      processes.clock.advance(1_000);
      await prune!({ signal });
      await processes.caughtUp();
      assert.doesNotMatch(await storedText(), /a secret/);

      for (const userId of [alice, bob]) {
        await rooms.memberships.leave(userId, roomId);
        await processes.assertAlike('a left room');
        assert.equal((await engine.userRooms.of(userId)).get(roomId)?.forgotten, false);
        await rooms.memberships.forget(userId, roomId);
        await processes.caughtUp();
        assert.equal((await engine.userRooms.of(userId)).get(roomId)?.forgotten, true);
      }
      const head = await engine.heads.get(roomId);
      assert.ok(head);
      const purge = new RoomPurge({ ...kernel, engine: rooms.engine, rows: roomRows });
      assert.ok(await purge.purge({ roomId, roomNid: head.roomNid }, async () => true, signal));
      await processes.caughtUp();
      assert.equal(await engine.heads.get(roomId), undefined);
      assert.equal(engine.events.peekById(secret), undefined);
      assert.equal((await engine.userRooms.of(alice)).has(roomId), false);
      await processes.assertAlike('a purged room');
    } finally {
      await processes.shutdown.run();
    }
  });

  it('a reader process opens again with empty caches when facts of the main process were lost', async () => {
    const processes = await new TwoProcesses().open();
    try {
      const { rooms } = processes.writer;
      const roomId = await rooms.creation.create(alice, { preset: 'public_chat' });
      await processes.assertAlike('a room');
      const first = processes.reader;
      processes.losesFacts = true;
      await rooms.memberships.join(bob, roomId);
      await send(processes.writer, bob, roomId, message('lost'));
      processes.losesFacts = false;
      await send(processes.writer, alice, roomId, message('came'));
      await processes.caughtUp();
      assert.notEqual(processes.reader, first);
      const read = async (side: Conversations) => (await processes.timeline(side, alice, roomId)).map(bodyOf);
      assert.deepEqual((await read(processes.reader.conversations)).slice(-2), ['lost', 'came']);
      await send(processes.writer, bob, roomId, message('after the restart'));
      await processes.caughtUp();
      const bodies = await read(processes.reader.conversations);
      assert.deepEqual(bodies.slice(-3), ['lost', 'came', 'after the restart']);
      assert.deepEqual(bodies, await read(processes.writer.conversations));
    } finally {
      await processes.shutdown.run();
    }
  });
});
