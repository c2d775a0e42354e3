/**
 * A process that only reads, over the database of one that writes: it follows the writer's facts as JSON and answers
 * each sync word for word like the writer.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Conversations, startConversations } from '../src/composition/conversations.ts';
import { type Environment, type MainKernel, openKernel } from '../src/composition/kernel.ts';
import { OpenedSlices } from '../src/composition/opened-slices.ts';
import type { Reader } from '../src/composition/reader.ts';
import { RestartingReader } from '../src/composition/restarting-reader.ts';
import { roomRows, startRooms } from '../src/composition/rooms.ts';
import { Shutdown } from '../src/composition/shutdown.ts';
import { startUsers, type Users } from '../src/composition/users.ts';
import { openE2ee } from '../src/e2ee/index.ts';
import { noFilter } from '../src/filters/index.ts';
import { silentLogger } from '../src/kernel/observability/index.ts';
import { systemRandomness } from '../src/kernel/randomness.ts';
import type { PublishedRange } from '../src/kernel/streams/index.ts';
import type { JsonObject } from '../src/protocol/index.ts';
import { RelationIndex } from '../src/relations/index.ts';
import { RoomPurge, type Rooms } from '../src/rooms/index.ts';
import { RedactionRetention } from '../src/rooms/redactions/redaction-retention.ts';
import { openToDeviceReading } from '../src/to-device/index.ts';
import { type ManualClock, manualClock } from './support/clocks/manual-clock.ts';
import { makeTestDatabase } from './support/databases/databases.ts';
import { testConfiguration } from './support/servers/server.ts';

const [alice, bob, carol] = ['@alice:test', '@bob:test', '@carol:test'];
const users = [alice, bob, carol];
const deviceId = 'DEVICE';

interface Writer {
  readonly kernel: MainKernel;
  readonly users: Users;
  readonly rooms: Rooms;
  readonly conversations: Conversations;
}

/** Two processes on one PostgreSQL database, and the bus between them. */
class TwoProcesses {
  readonly shutdown = new Shutdown(silentLogger);
  readonly clock: ManualClock = manualClock();
  readonly #since = new Map<string, string>();
  writer!: Writer;
  #reading!: RestartingReader;
  /** Whether the bus loses the facts that the writer publishes. */
  losesFacts = false;
  answers = 0;

  get reader(): Reader {
    return this.#reading.reader;
  }

  async open(): Promise<this> {
    const { clock, shutdown } = this;
    const place = await makeTestDatabase('postgres');
    shutdown.add('database of the test', () => place.remove());
    const environment: Environment = {
      configuration: testConfiguration(),
      clock,
      randomness: systemRandomness,
      log: silentLogger,
      databaseOptions: place.options,
    };
    const kernel = await openKernel(environment, shutdown);
    const opened = new OpenedSlices(shutdown);
    const users = startUsers(kernel, opened);
    const rooms = await startRooms(
      kernel,
      users,
      new RelationIndex(kernel.database, 'test', kernel.caches),
      opened,
    );
    const { queues } = opened.add('to-device messages', openToDeviceReading(kernel));
    const e2ee = await openE2ee({
      ...kernel,
      devices: users.accounts.devices,
      engine: rooms.engine,
      keyChanges: users.keyChanges,
      queues,
      reauthenticator: users.accounts.reauthenticator,
      jobs: undefined,
    });
    opened.add('end-to-end encryption', e2ee);
    const conversations = await startConversations(kernel, users, rooms, opened);
    this.writer = { kernel, users, rooms, conversations };
    const bus = {
      get current() {
        return kernel.streams.current;
      },
      subscribe: (listener: (range: PublishedRange) => void) =>
        kernel.streams.onPublish((range) => {
          if (!this.losesFacts) listener(JSON.parse(JSON.stringify(range)) as PublishedRange);
        }),
    };
    this.#reading = await RestartingReader.open(environment, bus);
    shutdown.add('reader', () => this.#reading.close());
    return this;
  }

  caughtUp(): Promise<void> {
    return this.#reading.caughtUp();
  }

  /** Asserts that both processes answer each user's sync alike, from the user's last token and from the beginning. */
  async assertAlike(step: string): Promise<void> {
    await this.caughtUp();
    for (const userId of users) {
      for (const since of [this.#since.get(userId), undefined]) {
        const written = await this.#sync(this.writer.conversations, userId, since);
        const followed = await this.#sync(this.reader.conversations, userId, since);
        assert.equal(followed, written, `${step}, for ${userId}, since ${since ?? 'the beginning'}`);
        this.answers++;
        if (since !== undefined || !this.#since.has(userId)) {
          this.#since.set(userId, (JSON.parse(written) as { next_batch: string }).next_batch);
        }
      }
    }
  }

  /** Returns the events of a room in an initial sync. */
  async timeline(side: Conversations, userId: string, roomId: string): Promise<JsonObject[]> {
    const { rooms } = JSON.parse(await this.#sync(side, userId, undefined)) as {
      rooms: { join: Record<string, { timeline: { events: JsonObject[] } }> };
    };
    return rooms.join[roomId]?.timeline.events ?? [];
  }

  async #sync({ sync }: Conversations, userId: string, since: string | undefined): Promise<string> {
    const answer = await sync.sync.sync({
      userId,
      deviceId,
      filter: noFilter,
      timelineLimit: 10,
      since,
      timeout: 0,
      fullState: false,
      stateAfter: undefined,
      tokenId: 1,
      filterText: undefined,
      client: { signal: new AbortController().signal, wasSent: Promise.resolve(true) },
    });
    return String(answer);
  }
}

let transactions = 0;

async function send(
  { rooms }: Writer,
  userId: string,
  roomId: string,
  content: JsonObject,
  type = 'm.room.message',
) {
  const sender = { userId, deviceId };
  return rooms.sending.message(sender, roomId, { type, content }, `txn${transactions++}`);
}

const bodyOf = ({ content }: JsonObject) => (content as JsonObject)['body'];

const message = (body: string, more: JsonObject = {}) => ({ msgtype: 'm.text', body, ...more });

describe('a process that only reads', () => {
  it('answers syncs word for word like the process that writes, after every kind of change', async () => {
    const both = await new TwoProcesses().open();
    try {
      const { writer } = both;
      const { rooms, users, conversations } = writer;
      await both.assertAlike('before anything');
      const roomId = await rooms.creation.create(alice, { preset: 'public_chat', name: 'Hearth' });
      await both.assertAlike('a room');
      await rooms.memberships.join(bob, roomId);
      await both.assertAlike('a join');
      await rooms.memberships.invite(alice, roomId, carol);
      await both.assertAlike('an invite');
      const first = await send(writer, alice, roomId, message('hello bob'));
      await both.assertAlike('a message');
      both.clock.advance(1_000);
      await send(
        writer,
        bob,
        roomId,
        message('* hello', {
          'm.new_content': message('hello alice'),
          'm.relates_to': { rel_type: 'm.replace', event_id: first },
        }),
      );
      const reply = await send(
        writer,
        bob,
        roomId,
        message('in a thread', {
          'm.relates_to': { rel_type: 'm.thread', event_id: first },
        }),
      );
      await both.assertAlike('a thread');
      await send(
        writer,
        alice,
        roomId,
        { 'm.relates_to': { rel_type: 'm.annotation', event_id: reply, key: 'x' } },
        'm.reaction',
      );
      await both.assertAlike('a reaction');
      const sender = { userId: alice, deviceId };
      await rooms.sending.state(sender, roomId, { type: 'm.room.topic', stateKey: '' }, { topic: 'news' });
      await both.assertAlike('a state event');
      await rooms.sending.redact({ userId: bob, deviceId }, roomId, reply, {}, 'redaction');
      await both.assertAlike('a redaction');
      await conversations.receipts.give({
        userId: bob,
        roomId,
        eventId: first,
        type: 'm.read',
        threadId: undefined,
      });
      await both.assertAlike('a receipt');
      conversations.typing.set(alice, roomId, true, 30_000);
      await both.assertAlike('typing');
      conversations.typing.set(alice, roomId, false, 0);
      await both.assertAlike('no typing');
      await users.accountData.set({ userId: alice, roomId: undefined, type: 'org.example' }, { a: 1 });
      await users.accountData.set({ userId: alice, roomId, type: 'm.tag' }, { tags: { 'm.favourite': {} } });
      await both.assertAlike('account data');
      await users.pushRules.change(bob, (rules) => rules);
      await both.assertAlike('push rules');
      await users.accountData.set(
        { userId: bob, roomId: undefined, type: 'm.ignored_user_list' },
        { ignored_users: { [alice]: {} } },
      );
      await send(writer, alice, roomId, message('not for bob'));
      await both.assertAlike('ignored users');
      await rooms.memberships.join(carol, roomId);
      await send(writer, carol, roomId, message('here I am'));
      await both.assertAlike('an accepted invite');
      await rooms.memberships.kick(alice, roomId, bob);
      await both.assertAlike('a kick');
      const other = await rooms.creation.create(bob, { preset: 'private_chat', invite: [carol] });
      for (let number = 0; number < 15; number++) await send(writer, bob, other, message(`${number}`));
      await both.assertAlike('a second room with more than one page');
      await rooms.memberships.leave(carol, other);
      await rooms.memberships.leave(carol, roomId);
      await both.assertAlike('left rooms');
      assert.ok(both.answers > 100);
    } finally {
      await both.shutdown.run();
    }
  });

  it('drops from its caches the rooms and contents that the main process deletes: forgotten and purged rooms, and the content of redacted events', async () => {
    const both = await new TwoProcesses().open();
    try {
      const { kernel, rooms } = both.writer;
      const roomId = await rooms.creation.create(alice, { preset: 'public_chat' });
      await rooms.memberships.join(bob, roomId);
      const secret = await send(both.writer, alice, roomId, message('a secret'));
      await rooms.sending.redact({ userId: alice, deviceId }, roomId, secret, {}, 'redaction');
      await both.assertAlike('a redaction');
      const { engine } = both.reader.rooms;
      const storedText = async () => JSON.stringify((await engine.events.getById(secret))?.event.pdu);
      assert.match(await storedText(), /a secret/);

      let prune: (context: { signal: AbortSignal }) => Promise<void>;
      const jobs = {
        every: (_name: string, _interval: number, { run }: { run: typeof prune }) => (prune = run),
      };
      new RedactionRetention({ ...kernel, jobs: jobs as never, engine: rooms.engine, period: 0 });
      const { signal } = new AbortController();
      both.clock.advance(1_000);
      await prune!({ signal });
      await both.caughtUp();
      assert.doesNotMatch(await storedText(), /a secret/);

      for (const userId of [alice, bob]) {
        await rooms.memberships.leave(userId, roomId);
        await both.assertAlike('a left room');
        assert.equal((await engine.userRooms.of(userId)).get(roomId)?.forgotten, false);
        await rooms.memberships.forget(userId, roomId);
        await both.caughtUp();
        assert.equal((await engine.userRooms.of(userId)).get(roomId)?.forgotten, true);
      }
      const head = await engine.heads.get(roomId);
      assert.ok(head);
      const purge = new RoomPurge({ ...kernel, engine: rooms.engine, rows: roomRows });
      assert.ok(await purge.purge({ roomId, roomNid: head.roomNid }, async () => true, signal));
      await both.caughtUp();
      assert.equal(await engine.heads.get(roomId), undefined);
      assert.equal(engine.events.peekById(secret), undefined);
      assert.equal((await engine.userRooms.of(alice)).has(roomId), false);
      await both.assertAlike('a purged room');
    } finally {
      await both.shutdown.run();
    }
  });

  it('opens again with empty caches when facts were lost', async () => {
    const both = await new TwoProcesses().open();
    try {
      const { rooms } = both.writer;
      const roomId = await rooms.creation.create(alice, { preset: 'public_chat' });
      await both.assertAlike('a room');
      const first = both.reader;
      both.losesFacts = true;
      await rooms.memberships.join(bob, roomId);
      await send(both.writer, bob, roomId, message('lost'));
      both.losesFacts = false;
      await send(both.writer, alice, roomId, message('came'));
      await both.caughtUp();
      assert.notEqual(both.reader, first);
      const read = async (side: Conversations) => (await both.timeline(side, alice, roomId)).map(bodyOf);
      assert.deepEqual((await read(both.reader.conversations)).slice(-2), ['lost', 'came']);
      await send(both.writer, bob, roomId, message('after the restart'));
      await both.caughtUp();
      const bodies = await read(both.reader.conversations);
      assert.deepEqual(bodies.slice(-3), ['lost', 'came', 'after the restart']);
      assert.deepEqual(bodies, await read(both.writer.conversations));
    } finally {
      await both.shutdown.run();
    }
  });

  it('rejects writes with an error, and has no methods that add events', async () => {
    const both = await new TwoProcesses().open();
    try {
      const { users, kernel } = both.reader;
      await assert.rejects(
        users.accountData.set({ userId: alice, roomId: undefined, type: 'org.example' }, {}),
        /does not write/,
      );
      assert.throws(() => kernel.streams.reserving(() => undefined), /does not write/);
      assert.ok(!('timeline' in both.reader.rooms.engine));
    } finally {
      await both.shutdown.run();
    }
  });
});
