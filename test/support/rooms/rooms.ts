import type { CacheRegistry } from '../../../src/kernel/caches/index.ts';
import type { Database, Migration } from '../../../src/kernel/database/index.ts';
import { createHttpServer, type HttpServer, type Route } from '../../../src/kernel/http/index.ts';
import { silentLogger } from '../../../src/kernel/observability/index.ts';
import { systemRandomness } from '../../../src/kernel/randomness.ts';
import { LocalStreams, streamMigrations } from '../../../src/kernel/streams/index.ts';
import { type JsonObject, MatrixError } from '../../../src/protocol/index.ts';
import { type RoomWriter, roomMigrations } from '../../../src/room-engine/index.ts';
import { roomFederationMigrations } from '../../../src/room-federation/index.ts';
import {
  openRooms,
  type RoomExtensions,
  type RoomFederation,
  type Rooms,
  type RoomsDeps,
  type RoomsOptions,
} from '../../../src/rooms/index.ts';
import { type ManualClock, manualClock } from '../clocks/manual-clock.ts';
import type { OpenDatabase } from '../databases/databases.ts';
import { newSigningKey } from '../inputs/signing-key.ts';
import { callApi } from '../servers/api-call.ts';
import { plainCaches } from '../servers/caches.ts';

export const alice = '@alice:test';
export const bob = '@bob:test';
export const carol = '@carol:test';

const signer = { serverName: 'test', key: newSigningKey('test') };

let transactions = 0;

/** Returns a transaction id that no other test or restart in this process uses. */
const newTransaction = () => `txn${transactions++}`;

/** Options that a test can choose. */
export interface RoomsTuning
  extends Partial<
    Pick<RoomsDeps, 'limits' | 'profiles' | 'eventCacheSize'> &
      Pick<RoomExtensions, 'erased' | 'eventChecks'> &
      Pick<RoomFederation, 'otherServers'>
  > {
  readonly options?: Partial<RoomsOptions>;
  /** Wraps the database that the rooms use. */
  readonly wrapDatabase?: (database: Database) => Database;
  readonly clock?: ManualClock;
}

/** The rooms slice on a database of its own, without accounts: every user id of the server `test` may act. */
export class RoomsUnderTest {
  static readonly migrations = [...streamMigrations, ...roomMigrations, ...roomFederationMigrations];
  readonly database: Database;
  readonly streams: LocalStreams;
  readonly clock: ManualClock;
  readonly rooms: Rooms;
  readonly engine: RoomWriter;

  private constructor(deps: {
    database: Database;
    streams: LocalStreams;
    clock: ManualClock;
    rooms: Rooms;
  }) {
    this.database = deps.database;
    this.streams = deps.streams;
    this.clock = deps.clock;
    this.rooms = deps.rooms;
    this.engine = deps.rooms.engine;
  }

  /** A new registry for each caller, so that a slice can be opened twice. */
  get caches(): CacheRegistry {
    return plainCaches(this.clock);
  }

  static async open(
    open: OpenDatabase,
    migrations: readonly Migration[] = [],
    tuning: RoomsTuning = {},
  ): Promise<RoomsUnderTest> {
    const database = await open([...RoomsUnderTest.migrations, ...migrations]);
    return RoomsUnderTest.#openOn(open, database, tuning.clock ?? manualClock(), tuning);
  }

  /** Restarts the rooms on the same database; objects from before must not be used again. */
  async restart(open: OpenDatabase, tuning: RoomsTuning = {}): Promise<RoomsUnderTest> {
    await this.rooms.incoming.close();
    await this.engine.close();
    return RoomsUnderTest.#openOn(open, await open.restart(this.database), this.clock, tuning);
  }

  static async #openOn(
    open: OpenDatabase,
    database: Database,
    clock: ManualClock,
    { options, wrapDatabase, clock: _, otherServers, ...others }: RoomsTuning,
  ): Promise<RoomsUnderTest> {
    const streams = await LocalStreams.open({ database, clock, log: silentLogger });
    const rooms = await openRooms(
      {
        database: wrapDatabase?.(database) ?? database,
        streams,
        clock,
        signer,
        randomness: systemRandomness,
        profiles: { profile: async () => ({}) },
        users: { isAdmin: async () => false },
        caches: plainCaches(clock),
        eventCacheSize: 10_000,
        ...others,
      },
      {
        default_room_version: '10',
        encryption_enabled_by_default_for_room_type: 'off',
        default_power_level_content_override: {},
        include_profile_data_on_invite: true,
        block_non_admin_invites: false,
        forget_rooms_on_leave: false,
        require_membership_for_aliases: true,
        allow_per_room_profiles: true,
        ...options,
      },
      { ...others, federation: { otherServers } },
    );
    // Otherwise the signing thread would run until the process ends, and keep the whole engine in memory.
    open.closeFirst?.(() => rooms.engine.close());
    return new RoomsUnderTest({ database, streams, clock, rooms });
  }

  /** Makes a public room; the first member creates it and the others join. @returns the room id */
  async room(...members: readonly [string, ...string[]]): Promise<string> {
    const [creator, ...others] = members;
    const roomId = await this.rooms.creation.create(creator, { preset: 'public_chat' });
    for (const userId of others) await this.join(userId, roomId);
    return roomId;
  }

  async join(userId: string, roomId: string): Promise<void> {
    await this.rooms.memberships.join(userId, roomId);
  }

  async leave(userId: string, roomId: string): Promise<void> {
    await this.rooms.memberships.leave(userId, roomId);
  }

  /** Sends a text message. @param more further fields of its content @returns the event id */
  say(userId: string, roomId: string, body: string, more: JsonObject = {}): Promise<string> {
    return this.send(userId, roomId, 'm.room.message', { msgtype: 'm.text', body, ...more });
  }

  /** Sends a text message in the thread of `root`. */
  reply(userId: string, roomId: string, root: string, body = 'reply'): Promise<string> {
    return this.say(userId, roomId, body, { 'm.relates_to': { rel_type: 'm.thread', event_id: root } });
  }

  send(userId: string, roomId: string, type: string, content: JsonObject): Promise<string> {
    const sender = { userId, deviceId: 'DEVICE' };
    return this.rooms.sending.message(sender, roomId, { type, content }, newTransaction());
  }

  redact(userId: string, roomId: string, eventId: string): Promise<string> {
    const sender = { userId, deviceId: 'DEVICE' };
    return this.rooms.sending.redact(sender, roomId, eventId, {}, newTransaction());
  }

  /** Returns the stream position of an event. */
  async positionOf(eventId: string): Promise<number> {
    const stored = await this.engine.events.getById(eventId);
    if (stored?.stream === undefined) throw new Error(`there is no event ${eventId}`);
    return stored.stream;
  }
}

/** A response. */
export interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

/**
 * Serves routes over HTTP; the user id is the access token. Responses are validated against the
 * specification.
 */
export class RoutesUnderTest {
  readonly #http: HttpServer;
  readonly #base: string;

  private constructor(http: HttpServer, base: string) {
    this.#http = http;
    this.#base = base;
  }

  static async start(routes: readonly Route[], clock: ManualClock): Promise<RoutesUnderTest> {
    const http = createHttpServer({
      listeners: [
        {
          name: 'test',
          bind: { kind: 'tcp', port: 0, addresses: ['127.0.0.1'], tls: undefined },
          resources: [{ names: ['client'], compress: false }],
          forwarded: false,
          requestIdHeader: undefined,
        },
      ],
      routes,
      authenticator: { authenticate: requesterOf },
      log: silentLogger,
      clock,
    });
    const [base = ''] = await http.start();
    return new RoutesUnderTest(http, base);
  }

  /**
   * @param userId absent for a request without an access token
   * @param path below `/_matrix/client` and the version
   */
  async call(
    userId: string | undefined,
    method: string,
    path: string,
    body?: unknown,
    version = '/v3',
  ): Promise<Answer> {
    const answer = await callApi(this.#base, method, `/_matrix/client${version}${path}`, {
      body: body === undefined ? undefined : JSON.stringify(body),
      ...(userId !== undefined && { token: userId }),
    });
    return { status: answer.status, body: answer.body };
  }

  async stop(): Promise<void> {
    await this.#http.stop(0);
  }
}

/** @param token a user id, or `bridge:` and the user id that an application service asserts */
function requesterOf(token: string) {
  const [, appservice, userId] = /^(?:(bridge):)?(@.*)$/.exec(token) ?? [];
  if (userId === undefined) throw new MatrixError(401, 'M_UNKNOWN_TOKEN', 'Unknown token');
  return {
    userId,
    deviceId: 'DEVICE',
    isGuest: false,
    isAdmin: false,
    appservice,
    isUnlimited: appservice !== undefined,
    tokenId: 1,
  };
}
