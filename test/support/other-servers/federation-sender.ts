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
import { alice, RoomsUnderTest } from '../rooms/rooms.ts';
import { plainCaches } from '../servers/caches.ts';

/** A transaction as it arrived. */
export interface ArrivedTransaction {
  readonly id: string;
  readonly pdus: readonly JsonObject[];
  readonly edus: readonly { readonly edu_type: string; readonly content: JsonObject }[];
}

/** A server that takes transactions, or does not. */
export interface Recipient {
  readonly name: string;
  /** All that came, those that were not taken included. */
  readonly arrived: ArrivedTransaction[];
  /** What is answered; waits if the test wants it to. 200 at first. */
  answer: (transaction: ArrivedTransaction) => number | Promise<number>;
  /** Bodies of the messages among the events that came, in order. */
  readonly messages: string[];
}

/** Waits until something is the case; fails after a long time. */
export async function until(
  isSo: () => boolean | Promise<boolean>,
  what = 'what was awaited',
): Promise<void> {
  await eventually(what, isSo);
}

/** The bodies of the messages among events. */
export const bodiesOf = (pdus: readonly JsonObject[]): string[] =>
  pdus.flatMap(({ type, content }) =>
    type === 'm.room.message' ? String((content as JsonObject)['body']) : [],
  );

/** Lets a recipient keep its answers to itself until the function that is returned is called. */
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

/** Starts senders for tests, which are closed after each. */
export function senderStarter(open: OpenDatabase) {
  let started: SenderUnderTest | undefined;
  afterEach(async () => {
    await started?.close();
    started = undefined;
  });
  /** A sender, the servers `names`, and a room with a user of each of them, in which Alice can say something. */
  return async <const Names extends readonly string[]>(
    names: Names,
    options: Overrides<FederationClientConfig> = {},
  ) => {
    const test = await SenderUnderTest.open(open, options);
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

/** The sender of the server `test`, with rooms and a clock that stands still, and servers that it sends to. */
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

  private constructor(open: OpenDatabase, under: RoomsUnderTest, options: Overrides<FederationClientConfig>) {
    this.#open = open;
    this.rooms = under;
    this.#options = options;
  }

  static async open(open: OpenDatabase, options: Overrides<FederationClientConfig> = {}) {
    const under = await RoomsUnderTest.open(open, [...federationClientMigrations, ...federationMigrations]);
    const test = new SenderUnderTest(open, under, options);
    await test.#start();
    return test;
  }

  get clock() {
    return this.rooms.clock;
  }

  /** Stops everything but the recipients and starts it again. @param crash nothing is written down before */
  async restart(crash = false): Promise<void> {
    if (!crash) await this.sender.stop();
    const before = this.#http;
    this.rooms = await this.rooms.restart(this.#open);
    await before?.close();
    await this.#start();
  }

  async close(): Promise<void> {
    await this.sender.stop();
    await this.#http?.close();
    await this.rooms.engine.close();
    for (const recipient of this.#recipients) await recipient.close();
    this.#authority.remove();
  }

  /** @param more further names of the same server */
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
    for (const one of [name, ...more]) {
      this.resolver.hosts.set(one, ['127.0.0.1']);
      const record = { name: one, port: server.port, priority: 0, weight: 0 };
      this.resolver.srv.set(`_matrix-fed._tcp.${one}`, [record]);
    }
    return recipient;
  }

  /** Resolves when a destination is left alone for some time. */
  blocked(name: string): Promise<void> {
    return until(
      async () => (await this.client.destinations.blockedUntil(name)) !== undefined,
      `${name} being left alone`,
    );
  }

  /** A room of Alice's, with a user of each of the servers `names`. */
  room(...names: readonly string[]): Promise<string> {
    return this.rooms.room(alice, ...names.map((name) => `@user:${name}`));
  }

  /** Resolves when nothing is on its way. */
  idle(): Promise<void> {
    return until(() => this.sender.status.destinations.sending === 0, 'nothing on its way');
  }

  /** Resolves when `count` servers are left alone until they are tried again. */
  waitsToRetry(count: number): Promise<void> {
    return until(() => this.sender.status.destinations['waiting to retry'] === count, `${count} waiting`);
  }

  /** How many rooms it is noted of that a server lacks events of them. */
  async countMissedRooms(): Promise<number> {
    const reader = this.rooms.database.reader<SenderTables>();
    return (await reader.selectFrom('destination_rooms').selectAll().execute()).length;
  }

  async #start(): Promise<void> {
    const { database, clock, streams, engine } = this.rooms;
    const config = sectionDefaults(outboundSection, { ip_range_whitelist: ['127.0.0.0/8'] });
    this.#http = new OutboundHttp({ config, clock: systemClock, resolver: this.resolver });
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
