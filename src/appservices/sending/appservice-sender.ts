import type { Appservice, AppserviceRegistry } from '../../appservice-registry/index.ts';
import { type Database, writerFor } from '../../kernel/database/index.ts';
import { Follower, type StreamReader } from '../../kernel/streams/index.ts';
import type { FanOut } from '../outbox/fan-out.ts';
import { deleteOutboxOfUnregistered, readQueues, servicesWithEntries } from '../store.ts';
import type { AppserviceTables } from '../tables.ts';
import { ServiceQueue, type ServiceQueueDeps } from './service-queue.ts';

export interface AppserviceSenderDeps extends ServiceQueueDeps {
  readonly registry: AppserviceRegistry;
  readonly streams: StreamReader;
  readonly database: Database;
}

/** The name of the follower that fills the outbox. */
export const followerName = 'appservices';

/** Follows the streams and sends each service its transactions. Services do not wait for each other. */
export class AppserviceSender {
  readonly #deps: AppserviceSenderDeps;
  /** By the id of the service. */
  readonly #queues = new Map<string, ServiceQueue>();
  readonly #follower: Follower;

  /** @param fanOut writes the outbox */
  constructor(deps: AppserviceSenderDeps, fanOut: Pick<FanOut, 'follow'>) {
    this.#deps = deps;
    this.#follower = new Follower(deps, {
      name: followerName,
      follow: (after, upTo) => fanOut.follow(after, upTo),
    });
  }

  /** Starts to send, first the transactions and entries that were pending when the server stopped. */
  async start(): Promise<void> {
    const { database, registry } = this.#deps;
    const reader = database.reader<AppserviceTables>();
    const stored = new Map((await readQueues(reader)).map((row) => [row.service_id, row]));
    const servicesWithUrl = registry.services.filter(({ registration }) => registration.url !== undefined);
    for (const service of servicesWithUrl) {
      this.#queues.set(service.id, new ServiceQueue(service, this.#deps, stored.get(service.id)));
    }
    const idsWithEntries = await servicesWithEntries(reader);
    if (idsWithEntries.some((id) => !this.#queues.has(id))) {
      const ids = [...this.#queues.keys()];
      await database.transaction<AppserviceTables, void>((writer) =>
        deleteOutboxOfUnregistered(writerFor<AppserviceTables>(writer), ids),
      );
    }
    for (const queue of this.#queues.values()) queue.wake();
    await this.#follower.start();
  }

  async stop(): Promise<void> {
    await this.#follower.stop();
    await Promise.all(this.#queues.values().map((queue) => queue.stop()));
  }

  /** Sends services the entries of their outboxes, and their ephemeral data. */
  wake(services: Iterable<Appservice>): void {
    for (const { id } of services) this.#queues.get(id)?.wake();
  }

  /** Ends the backoff of a service whose own requests show that it is up. */
  retryNow(serviceId: string): void {
    this.#queues.get(serviceId)?.retryNow();
  }

  /** Resolves when all facts so far are in the outbox. */
  caughtUp(): Promise<void> {
    return this.#follower.caughtUp();
  }

  /** Resolves as `caughtUp` does, or after some seconds. */
  caughtUpSoon(): Promise<void> {
    return this.#follower.caughtUpSoon();
  }
}
