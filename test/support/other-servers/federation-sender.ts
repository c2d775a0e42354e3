import { text } from 'node:stream/consumers';
import { afterEach } from 'node:test';
import { EduOutbox, FederationSender, federationMigrations } from '../../../src/federation/index.ts';
import type { SenderTables } from '../../../src/federation/sender/tables.ts';
import {
  type FederationClientConfig,
  type FederationClientSlice,
  federationClientMigrations,
  federationClientSection,
  openFederationClient,
  TransactionsApi,
} from '../../../src/federation-client/index.ts';
import { systemClock } from '../../../src/kernel/clock.ts';
import { silentLogger } from '../../../src/kernel/observability/index.ts';
import { OutboundHttp, outboundSection } from '../../../src/kernel/outbound/index.ts';
import { systemRandomness } from '../../../src/kernel/randomness.ts';
import type { JsonObject } from '../../../src/protocol/index.ts';
import { eventually } from '../../clients/eventually.ts';
import type { OpenDatabase } from '../databases/databases.ts';
import { type Overrides, sectionDefaults } from '../inputs/section-defaults.ts';
import { newSigningKey } from '../inputs/signing-key.ts';
import { FakeResolver, type LoopbackServer, serveOnLoopback } from '../network/loopback.ts';
import { commonTestAuthority, type TestAuthority } from '../network/test-authority.ts';
import { alice, type RoomsTuning, RoomsUnderTest } from '../rooms/rooms.ts';
import { plainCaches } from '../servers/caches.ts';

/** A transaction as the recipient received it. */
export interface ArrivedTransaction {
  readonly id: string;
  readonly pdus: readonly JsonObject[];
  readonly edus: readonly { readonly edu_type: string; readonly content: JsonObject }[];
}

/** A server that receives transactions and answers as the test decides. */
export interface Recipient {
  readonly name: string;
  /** All transactions received, also those answered with an error. */
  readonly arrived: ArrivedTransaction[];
  /** Returns the status to answer with, after a delay if it returns a promise; 200 by default. */
  answer: (transaction: ArrivedTransaction) => number | Promise<number>;
  /** Bodies of the messages among the received events, in order. */
  readonly messages: string[];
}

/** Waits until the condition holds; fails after a long time. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  description = 'the condition',
): Promise<void> {
  await eventually(description, condition);
}

/** Bodies of the messages among the PDUs. */
export const bodiesOf = (pdus: readonly JsonObject[]): string[] =>
  pdus.flatMap(({ type, content }) =>
    type === 'm.room.message' ? String((content as JsonObject)['body']) : [],
  );

/** Holds the recipient's responses back. @returns a function that releases them */
export function holdAnswers(recipient: Recipient): () => void {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  recipient.answer = async () => {
    await released;
    return 200;
  };
  return release;
}

/** Returns a function that starts a sender for a test; the sender is closed after the test. */
export function senderStarter(open: OpenDatabase) {
  let started: SenderUnderTest | undefined;
  afterEach(async () => {
    await started?.close();
    started = undefined;
  });
  /** Starts a sender, the recipients `names`, and a room with Alice and one user of each of these servers. */
  return async <const Names extends readonly string[]>(
    names: Names,
    options: Overrides<FederationClientConfig> = {},
    rooms: RoomsTuning = {},
  ) => {
    const test = await SenderUnderTest.open(open, options, rooms);
    started = test;
    const recipients: Recipient[] = [];
    for (const name of names) recipients.push(await test.recipient(name));
    const roomId = await test.room(...names);
    return {
      test,
      roomId,
      recipients: recipients as unknown as { readonly [I in keyof Names]: Recipient },
      say: (body: string) => test.rooms.say(alice, roomId, body),
    };
  };
}

/**
 * The federation sender of the server `test`, with rooms, a manual clock and recipients on the loopback
 * address.
 */
export class SenderUnderTest {
  rooms: RoomsUnderTest;
  sender!: FederationSender;
  outbox!: EduOutbox;
  client!: FederationClientSlice;
  readonly resolver = new FakeResolver();
  readonly #open: OpenDatabase;
  readonly #authority: TestAuthority = commonTestAuthority();
  readonly #options: Overrides<FederationClientConfig>;
  readonly #recipients: LoopbackServer[] = [];
  #http: OutboundHttp | undefined;

  private constructor(
    open: OpenDatabase,
    fixture: RoomsUnderTest,
    options: Overrides<FederationClientConfig>,
  ) {
    this.#open = open;
    this.rooms = fixture;
    this.#options = options;
  }

  static async open(
    open: OpenDatabase,
    options: Overrides<FederationClientConfig> = {},
    rooms: RoomsTuning = {},
  ) {
    const migrations = [...federationClientMigrations, ...federationMigrations];
    const fixture = await RoomsUnderTest.open(open, migrations, rooms);
    const test = new SenderUnderTest(open, fixture, options);
    await test.#start();
    return test;
  }

  get clock() {
    return this.rooms.clock;
  }

  /**
   * Restarts everything but the recipients.
   * @param crash skips stopping the sender, so that it saves nothing
   */
  async restart(crash = false): Promise<void> {
    if (!crash) await this.sender.stop();
    const previousHttp = this.#http;
    this.rooms = await this.rooms.restart(this.#open);
    await previousHttp?.close();
    await this.#start();
  }

  async close(): Promise<void> {
    await this.sender.stop();
    await this.#http?.close();
    await this.rooms.engine.close();
    for (const recipient of this.#recipients) await recipient.close();
    this.#authority.remove();
  }

  /** Starts a server that receives transactions. @param more further names of the same server */
  async recipient(name: string, ...more: readonly string[]): Promise<Recipient> {
    const recipient: Recipient = {
      name,
      arrived: [],
      answer: () => 200,
      get messages() {
        return this.arrived.flatMap(({ pdus }) => bodiesOf(pdus));
      },
    };
    const server = await serveOnLoopback(
      async (request, response) => {
        const body = JSON.parse(await text(request)) as ArrivedTransaction;
        const transaction = { ...body, id: request.url!.split('/').at(-1)! };
        recipient.arrived.push(transaction);
        const status = await recipient.answer(transaction);
        response.writeHead(status, { 'content-type': 'application/json' }).end('{"pdus":{}}');
      },
      this.#authority.issue(name, ...more),
    );
    this.#recipients.push(server);
    for (const serverName of [name, ...more]) {
      this.resolver.hosts.set(serverName, ['127.0.0.1']);
      const record = { name: serverName, port: server.port, priority: 0, weight: 0 };
      this.resolver.srv.set(`_matrix-fed._tcp.${serverName}`, [record]);
    }
    return recipient;
  }

  /** Makes a room with Alice and one user of each of the servers `names`. */
  room(...names: readonly string[]): Promise<string> {
    return this.rooms.room(alice, ...names.map((name) => `@user:${name}`));
  }

  /** Resolves when no transaction is in flight. */
  idle(): Promise<void> {
    return until(() => this.sender.status.destinations.sending === 0, 'no transaction to be in flight');
  }

  /** Resolves when `count` servers are in backoff. */
  waitsToRetry(count: number): Promise<void> {
    return until(
      () => this.sender.status.destinations['waiting to retry'] === count,
      `${count} servers in backoff`,
    );
  }

  /**
   * Advances the clock until the sender has no record of a room with events that a server lacks. The sender deletes such
   * a record when it saves for the first time after the acknowledgement.
   */
  nothingMissed(): Promise<void> {
    return until(async () => {
      this.clock.advance(1_000);
      return (await this.countMissedRooms()) === 0;
    }, 'all missed events to be sent');
  }

  /** Counts the stored pairs of a server and a room with events that the server lacks. */
  async countMissedRooms(): Promise<number> {
    const reader = this.rooms.database.reader<SenderTables>();
    return (await reader.selectFrom('destination_rooms').selectAll().execute()).length;
  }

  async #start(): Promise<void> {
    const { database, clock, streams, engine } = this.rooms;
    const config = sectionDefaults(outboundSection, { ip_range_whitelist: ['127.0.0.0/8'] });
    this.#http = new OutboundHttp({
      caches: plainCaches(systemClock),
      config,
      clock: systemClock,
      resolver: this.resolver,
    });
    this.client = await openFederationClient({
      http: this.#http,
      resolver: this.resolver,
      database,
      caches: plainCaches(clock),
      clock,
      randomness: systemRandomness,
      log: silentLogger,
      serverName: 'test',
      signingKeys: [newSigningKey('test')],
      options: sectionDefaults(federationClientSection, {
        federation_custom_ca_list: [this.#authority.path],
        trusted_key_servers: [],
        federation: { max_long_retries: 0, destination_min_retry_interval: 60_000 },
        ...this.#options,
      }),
    });
    const isDestination = (name: string) => name !== 'test' && this.client.whitelist.allows(name);
    this.outbox = await EduOutbox.open({ database, clock, isDestination });
    this.sender = new FederationSender({
      serverName: 'test',
      database,
      caches: plainCaches(clock),
      streams,
      clock,
      randomness: systemRandomness,
      log: silentLogger,
      engine,
      destinations: this.client.destinations,
      api: new TransactionsApi(this.client.requests),
      outbox: this.outbox,
      isDestination,
    });
    await this.sender.start();
  }
}
