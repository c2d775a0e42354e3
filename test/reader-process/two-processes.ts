import assert from 'node:assert/strict';
import { type Conversations, startConversations } from '../../src/composition/conversations.ts';
import { type Environment, type MainKernel, openKernel } from '../../src/composition/kernel.ts';
import { OpenedSlices } from '../../src/composition/opened-slices.ts';
import type { Reader } from '../../src/composition/reader.ts';
import { RestartingReader } from '../../src/composition/restarting-reader.ts';
import { startRooms } from '../../src/composition/rooms.ts';
import { Shutdown } from '../../src/composition/shutdown.ts';
import { startUsers, type Users } from '../../src/composition/users.ts';
import { type E2ee, openE2ee } from '../../src/e2ee/index.ts';
import { noFilter } from '../../src/filters/index.ts';
import { silentLogger } from '../../src/kernel/observability/index.ts';
import { systemRandomness } from '../../src/kernel/randomness.ts';
import type { PublishedRange } from '../../src/kernel/streams/index.ts';
import type { JsonObject } from '../../src/protocol/index.ts';
import { RelationIndex } from '../../src/relations/index.ts';
import type { Rooms } from '../../src/rooms/index.ts';
import { openToDevice, type ToDevice } from '../../src/to-device/index.ts';
import { type ManualClock, manualClock } from '../support/clocks/manual-clock.ts';
import { makeTestDatabase } from '../support/databases/databases.ts';
import { testConfiguration } from '../support/servers/server.ts';

export const alice = '@alice:test';
export const bob = '@bob:test';
export const carol = '@carol:test';
const users = [alice, bob, carol];
export const deviceId = 'DEVICE';

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

export interface Writer {
  readonly kernel: MainKernel;
  readonly users: Users;
  readonly rooms: Rooms;
  readonly toDevice: ToDevice;
  readonly e2ee: E2ee;
  readonly conversations: Conversations;
}

/**
 * A main process and a reader process on one PostgreSQL database, and the bus between them: the reader follows the
 * writer's facts as JSON.
 */
export class TwoProcesses {
  readonly shutdown = new Shutdown(silentLogger);
  readonly clock: ManualClock = manualClock();
  /** The last token of classic sync, by user. */
  readonly #since = new Map<string, string>();
  /** The positions of the connections of sliding sync, by process and user. */
  readonly #pos = new Map<string, string>();
  writer!: Writer;
  #reading!: RestartingReader;
  /** Whether the bus loses the facts that the writer publishes. */
  losesFacts = false;
  /** Number of classic syncs whose answers were compared. */
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
      const written = await this.#slidingSync(this.writer.conversations, userId);
      const followed = await this.#slidingSync(this.reader.conversations, userId);
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

  /** Continues the user's sliding sync connection of this process. @returns all but `pos` */
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

/** Sends an event to a room. @returns its id */
export async function send(
  { rooms }: Writer,
  userId: string,
  roomId: string,
  content: JsonObject,
  type = 'm.room.message',
) {
  const sender = { userId, deviceId };
  return rooms.sending.message(sender, roomId, { type, content }, `txn${transactions++}`);
}

/** Returns the content of a message. */
export const message = (body: string, more: JsonObject = {}) => ({ msgtype: 'm.text', body, ...more });
