/**
 * A reader process, on the database of the main process: it follows the writer's facts as JSON and answers
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
import { type E2ee, openE2ee } from '../src/e2ee/index.ts';
import { noFilter } from '../src/filters/index.ts';
import { silentLogger } from '../src/kernel/observability/index.ts';
import { systemRandomness } from '../src/kernel/randomness.ts';
import type { PublishedRange } from '../src/kernel/streams/index.ts';
import type { PresenceState } from '../src/presence/index.ts';
import type { JsonObject } from '../src/protocol/index.ts';
import { RelationIndex } from '../src/relations/index.ts';
import { RoomPurge, type Rooms } from '../src/rooms/index.ts';
import { RedactionRetention } from '../src/rooms/redactions/redaction-retention.ts';
import { openToDevice, type ToDevice } from '../src/to-device/index.ts';
import { type ManualClock, manualClock } from './support/clocks/manual-clock.ts';
import { makeTestDatabase } from './support/databases/databases.ts';
import { testConfiguration } from './support/servers/server.ts';
import { ClientDevice } from './support/users/client-device.ts';

const [alice, bob, carol] = ['@alice:test', '@bob:test', '@carol:test'];
const users = [alice, bob, carol];
const deviceId = 'DEVICE';

type SyncKind = 'classic' | 'sliding';

/** A request of sliding sync for all rooms and all extensions. */
const slidingBody = {
  lists: {
    all: {
      ranges: [[0, 20] as [number, number]],
      required_state: [['*', '*'] as [string, string]],
      timeline_limit: 10,
    },
  },
  extensions: {
    to_device: { enabled: true },
    e2ee: { enabled: true },
    account_data: { enabled: true },
    receipts: { enabled: true },
    typing: { enabled: true },
    'io.element.msc4308.thread_subscriptions': { enabled: true },
  },
};

interface Writer {
  readonly kernel: MainKernel;
  readonly users: Users;
  readonly rooms: Rooms;
  readonly toDevice: ToDevice;
  readonly e2ee: E2ee;
  readonly conversations: Conversations;
}

/** Two processes on one PostgreSQL database, and the bus between them. */
class TwoProcesses {
  readonly shutdown = new Shutdown(silentLogger);
  readonly clock: ManualClock = manualClock();
  readonly #since = new Map<string, string>();
  /** The positions of the connections of sliding sync, by process and user. */
  readonly #pos = new Map<string, string>();
  writer!: Writer;
  #reading!: RestartingReader;
  /** Whether the bus loses the facts that the writer publishes. */
  losesFacts = false;
  answerCount = 0;

  get reader(): Reader {
    return this.#reading.reader;
  }

  async open(): Promise<this> {
    const { clock, shutdown } = this;
    const testDatabase = await makeTestDatabase('postgres');
    shutdown.add('database of the test', () => testDatabase.remove());
    const environment: Environment = {
      configuration: testConfiguration(),
      clock,
      randomness: systemRandomness,
      log: silentLogger,
      databaseOptions: testDatabase.options,
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
    const { devices } = users.accounts;
    const { queues, toDevice } = opened.add('to-device messages', openToDevice({ ...kernel, devices }));
    const e2ee = await openE2ee({
      ...kernel,
      devices,
      engine: rooms.engine,
      keyChanges: users.keyChanges,
      queues,
      reauthenticator: users.accounts.reauthenticator,
      jobs: undefined,
    });
    opened.add('end-to-end encryption', e2ee);
    const conversations = await startConversations(kernel, users, rooms, opened);
    this.writer = { kernel, users, rooms, toDevice, e2ee, conversations };
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

  /**
   * Asserts that both processes answer each user's syncs alike: classic syncs from the user's last token and from the
   * beginning, and the next sliding sync.
   */
  async assertAlike(step: string): Promise<void> {
    await this.caughtUp();
    for (const userId of users) {
      for (const since of [this.#since.get(userId), undefined]) {
        const answerOfWriter = await this.#sync(this.writer.conversations, userId, since);
        const answerOfReader = await this.#sync(this.reader.conversations, userId, since);
        assert.equal(
          answerOfReader,
          answerOfWriter,
          `${step}, for ${userId}, since ${since ?? 'the beginning'}`,
        );
        this.answerCount++;
        if (since !== undefined || !this.#since.has(userId)) {
          this.#since.set(userId, (JSON.parse(answerOfWriter) as { next_batch: string }).next_batch);
        }
      }
      const [written, followed] = [
        await this.#slidingSync(this.writer.conversations, userId),
        await this.#slidingSync(this.reader.conversations, userId),
      ];
      assert.equal(followed, written, `${step}, for ${userId}, in sliding sync`);
    }
  }

  /** Returns the presence in an initial sync, as JSON. */
  async presenceIn(side: Conversations, userId: string): Promise<string> {
    const { presence } = JSON.parse(await this.#sync(side, userId, undefined)) as { presence?: JsonObject };
    return JSON.stringify(presence);
  }

  /** Returns the events of a room in an initial sync. */
  async timeline(side: Conversations, userId: string, roomId: string): Promise<JsonObject[]> {
    const { rooms } = JSON.parse(await this.#sync(side, userId, undefined)) as {
      rooms: { join: Record<string, { timeline: { events: JsonObject[] } }> };
    };
    return rooms.join[roomId]?.timeline.events ?? [];
  }

  /**
   * Makes a change while users have long polls open, classic and sliding, in both processes, and asserts that both
   * processes answer them alike.
   * @param change publishes one fact: after the first of several facts, the answers could lack the others
   */
  async assertAwakes(
    step: string,
    awoken: readonly string[],
    change: () => Promise<unknown>,
    kinds: readonly SyncKind[] = ['classic', 'sliding'],
  ): Promise<void> {
    await this.assertAlike(`before ${step}`);
    const polls = awoken.flatMap((userId) =>
      kinds.map((kind) => {
        const since = this.#since.get(userId);
        const answers = this.#sides.map((side) =>
          kind === 'classic'
            ? this.#sync(side, userId, since, 30_000)
            : this.#slidingSync(side, userId, 30_000),
        );
        return { userId, kind, answers };
      }),
    );
    await change();
    for (const { userId, kind, answers } of polls) {
      const [written, followed] = await Promise.all(answers);
      assert.equal(followed, written, `${step}, in a ${kind} long poll of ${userId}`);
    }
    await this.assertAlike(step);
  }

  get #sides(): readonly [Conversations, Conversations] {
    return [this.writer.conversations, this.reader.conversations];
  }

  /** Continues the user's connection of sliding sync, of which each process has its own. @returns all but `pos` */
  async #slidingSync(side: Conversations, userId: string, timeout = 0): Promise<string> {
    const conn_id = side === this.writer.conversations ? 'writer' : 'reader';
    const key = `${conn_id} ${userId}`;
    const answer = await side.sync.slidingSync.sync({
      userId,
      deviceId,
      body: { conn_id, ...slidingBody },
      pos: this.#pos.get(key),
      timeout,
      signal: new AbortController().signal,
    });
    const { pos, ...rest } = JSON.parse(answer) as { pos: string };
    this.#pos.set(key, pos);
    return JSON.stringify(rest);
  }

  async #sync(
    { sync }: Conversations,
    userId: string,
    since: string | undefined,
    timeout = 0,
  ): Promise<string> {
    const answer = await sync.sync.sync({
      userId,
      deviceId,
      filter: noFilter,
      timelineLimit: 10,
      since,
      timeout,
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

describe('a reader process', () => {
  it('answers syncs word for word like the main process, after every kind of change', async () => {
    const processes = await new TwoProcesses().open();
    try {
      const { writer } = processes;
      const { rooms, users, conversations } = writer;
      await processes.assertAlike('before anything');
      const roomId = await rooms.creation.create(alice, { preset: 'public_chat', name: 'Hearth' });
      await processes.assertAlike('a room');
      await rooms.memberships.join(bob, roomId);
      await processes.assertAlike('a join');
      await rooms.memberships.invite(alice, roomId, carol);
      await processes.assertAlike('an invite');
      const first = await send(writer, alice, roomId, message('hello bob'));
      await processes.assertAlike('a message');
      processes.clock.advance(1_000);
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
      await processes.assertAlike('a thread');
      await send(
        writer,
        alice,
        roomId,
        { 'm.relates_to': { rel_type: 'm.annotation', event_id: reply, key: 'x' } },
        'm.reaction',
      );
      await processes.assertAlike('a reaction');
      const sender = { userId: alice, deviceId };
      await rooms.sending.state(sender, roomId, { type: 'm.room.topic', stateKey: '' }, { topic: 'news' });
      await processes.assertAlike('a state event');
      await rooms.sending.redact({ userId: bob, deviceId }, roomId, reply, {}, 'redaction');
      await processes.assertAlike('a redaction');
      await conversations.receipts.send({
        userId: bob,
        roomId,
        eventId: first,
        type: 'm.read',
        threadId: undefined,
      });
      await processes.assertAlike('a receipt');
      conversations.typing.set(alice, roomId, true, 30_000);
      await processes.assertAlike('typing');
      conversations.typing.set(alice, roomId, false, 0);
      await processes.assertAlike('no typing');
      await users.accountData.set({ userId: alice, roomId: undefined, type: 'org.example' }, { a: 1 });
      await users.accountData.set({ userId: alice, roomId, type: 'm.tag' }, { tags: { 'm.favourite': {} } });
      await processes.assertAlike('account data');
      await users.pushRules.change(bob, (rules) => rules);
      await processes.assertAlike('push rules');
      await users.accountData.set(
        { userId: bob, roomId: undefined, type: 'm.ignored_user_list' },
        { ignored_users: { [alice]: {} } },
      );
      await send(writer, alice, roomId, message('not for bob'));
      await processes.assertAlike('ignored users');
      await rooms.memberships.join(carol, roomId);
      await send(writer, carol, roomId, message('here I am'));
      await processes.assertAlike('an accepted invite');
      await rooms.memberships.kick(alice, roomId, bob);
      await processes.assertAlike('a kick');
      const secondRoom = await rooms.creation.create(bob, { preset: 'private_chat', invite: [carol] });
      for (let number = 0; number < 15; number++) await send(writer, bob, secondRoom, message(`${number}`));
      await processes.assertAlike('a second room with more than one page');
      await rooms.memberships.leave(carol, secondRoom);
      await rooms.memberships.leave(carol, roomId);
      await processes.assertAlike('left rooms');
      assert.ok(processes.answerCount > 100);
    } finally {
      await processes.shutdown.run();
    }
  });

  it('answers syncs word for word like the main process after changes of devices, keys, to-device messages, thread subscriptions and presence, and in long polls', async () => {
    const processes = await new TwoProcesses().open();
    try {
      const { writer, clock } = processes;
      const { rooms, users, toDevice, e2ee, conversations } = writer;
      const roomId = await rooms.creation.create(alice, { preset: 'public_chat' });
      const inRoom = [alice, bob];
      await processes.assertAlike('a room');
      await processes.assertAwakes('a join', inRoom, () => rooms.memberships.join(bob, roomId));
      const root = await send(writer, alice, roomId, message('the root'));
      await processes.assertAwakes('a message', inRoom, () => send(writer, bob, roomId, message('hello')));
      const device = (userId: string, id = deviceId) =>
        users.accounts.devices.create({ userId, deviceId: id, displayName: undefined });
      for (const userId of inRoom) {
        await processes.assertAwakes('a new device', inRoom, () => device(userId));
      }
      const client = new ClientDevice(alice, deviceId);
      const upload = (body: JsonObject) => e2ee.upload.upload(alice, deviceId, body);
      await upload({ device_keys: client.deviceKeys() });
      await processes.assertAlike('device keys');
      await processes.assertAwakes('one-time keys', [alice], () =>
        upload({ one_time_keys: client.oneTimeKeys(5) }),
      );
      await processes.assertAwakes('a fallback key', [alice], () =>
        upload({ fallback_keys: client.oneTimeKeys(1, 9, { fallback: true }) }),
      );
      const claimed = new Map([[alice, new Map([[deviceId, 'signed_curve25519']])]]);
      for (let claim = 0; claim < 6; claim++) {
        await processes.assertAwakes('a claimed key', [alice], () => e2ee.claiming.claim(claimed, 0));
      }
      for (const body of ['first', 'second']) {
        await processes.assertAwakes('a to-device message', [alice], () =>
          toDevice.send({
            sender: bob,
            origin: { name: bob, deviceId },
            txnId: body,
            type: 'org.example',
            messages: new Map([[alice, new Map([[deviceId, { body }]])]]),
          }),
        );
      }
      await processes.assertAlike('acknowledged to-device messages');
      const thread = { userId: alice, roomId, rootId: root };
      await processes.assertAwakes(
        'a thread subscription',
        [alice],
        () => conversations.threads.subscribe(thread),
        ['sliding'],
      );
      await send(
        writer,
        bob,
        roomId,
        message('in it', { 'm.relates_to': { rel_type: 'm.thread', event_id: root } }),
      );
      await processes.assertAlike('a message in a followed thread');
      await processes.assertAwakes(
        'the end of a thread subscription',
        [alice],
        () => conversations.threads.unsubscribe(thread),
        ['sliding'],
      );
      const { presence } = conversations;
      const announced = async () => {
        clock.advance(1_000);
        await presence.announcements.idle();
      };
      const setPresence = async (state: PresenceState, status?: string) => {
        presence.set({ userId: alice, deviceId }, state, status);
        await announced();
      };
      await processes.assertAwakes('presence', inRoom, () => setPresence('online', 'here'), ['classic']);
      assert.match(await processes.presenceIn(processes.reader.conversations, bob), /"status_msg":"here"/);
      await processes.assertAwakes('another status', inRoom, () => setPresence('unavailable', 'away'), [
        'classic',
      ]);
      await rooms.memberships.join(carol, roomId);
      await processes.assertAlike('a join of a user who sees the presence of the others');
      clock.advance(60_000);
      await announced();
      await processes.assertAlike('a user who went offline');
      const other = await rooms.creation.create(carol, { preset: 'public_chat' });
      await rooms.memberships.join(bob, other);
      await rooms.memberships.leave(carol, roomId);
      await rooms.memberships.join(carol, roomId);
      await processes.assertAlike('a join of a user who sees the last status of users who are offline');
      await users.accounts.devices.remove(alice, [deviceId]);
      await processes.assertAlike('a deleted device');
    } finally {
      await processes.shutdown.run();
    }
  });

  it('drops from its caches the rooms and contents that the main process deletes: forgotten and purged rooms, and the content of redacted events', async () => {
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

  it('opens again with empty caches when facts were lost', async () => {
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

  it('rejects writes with an error, and has no methods that add events', async () => {
    const processes = await new TwoProcesses().open();
    try {
      const { users, kernel } = processes.reader;
      await assert.rejects(
        users.accountData.set({ userId: alice, roomId: undefined, type: 'org.example' }, {}),
        /does not write/,
      );
      assert.throws(() => kernel.streams.reserving(() => undefined), /does not write/);
      assert.ok(!('timeline' in processes.reader.rooms.engine));
    } finally {
      await processes.shutdown.run();
    }
  });
});
