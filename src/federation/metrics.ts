import type { Clock } from '../kernel/clock.ts';
import type { Metrics } from '../kernel/observability/index.ts';
import { isJsonObject, type JsonValue } from '../protocol/index.ts';
import type { FederationSender } from './sender/federation-sender.ts';
import type { SenderObserver } from './sender/queues/queue-deps.ts';
import type { Transaction } from './sender/transactions/transaction.ts';
import type { TransactionObserver } from './transactions/transactions.ts';

export interface TrafficMetricsDeps {
  readonly metrics: Metrics;
  readonly clock: Clock;
  /** `federation_metrics_domains` */
  readonly domains: readonly string[];
}

/** Minimum interval between two counts of all servers, in milliseconds. */
const countInterval = 60_000;

/** Metrics of the traffic between this server and other servers. */
export class TrafficMetrics implements SenderObserver, TransactionObserver {
  readonly #clock: Clock;
  readonly #domains: ReadonlySet<string>;
  readonly #sent;
  readonly #received;
  readonly #items;
  readonly #sentAge;
  readonly #receivedAge;
  readonly #metrics: Metrics;

  constructor({ metrics, clock, domains }: TrafficMetricsDeps) {
    this.#metrics = metrics;
    this.#clock = clock;
    this.#domains = new Set(domains);
    this.#sent = metrics.counter({
      name: 'server_federation_transactions_sent_total',
      help: 'Transactions sent to other servers, by outcome',
      labelNames: ['outcome'],
    });
    this.#received = metrics.counter({
      name: 'server_federation_transactions_received_total',
      help: 'Transactions received from other servers, by kind: new, or repeated (the same one was received before)',
      labelNames: ['kind'],
    });
    this.#items = metrics.counter({
      name: 'server_federation_items_total',
      help: 'Events and EDUs in transactions that were acknowledged or received',
      labelNames: ['direction', 'kind'],
    });
    this.#sentAge = metrics.gauge({
      name: 'server_federation_last_sent_pdu_age_seconds',
      help: 'Age of the last event sent to a server of federation_metrics_domains, when it was acknowledged',
      labelNames: ['server_name'],
    });
    this.#receivedAge = metrics.gauge({
      name: 'server_federation_last_received_pdu_age_seconds',
      help: 'Age of the last event received from a server of federation_metrics_domains, when it arrived',
      labelNames: ['server_name'],
    });
  }

  /** Reports how many servers share rooms with this server; calls `count` at most once per minute. */
  watchServers(count: () => Promise<number>): void {
    let lastCount: { readonly at: number; readonly value: Promise<number> } | undefined;
    const current = () => {
      const now = this.#clock.monotonic();
      if (!lastCount || now - lastCount.at > countInterval) lastCount = { at: now, value: count() };
      return lastCount.value;
    };
    this.#metrics.gauge({
      name: 'server_federation_known_servers',
      help: 'Servers with users in the rooms of local users, including this server',
      async collect() {
        this.set(await current());
      },
    });
  }

  /** Reports the queues of the sender. */
  watch(sender: Pick<FederationSender, 'status'>): void {
    this.#metrics.gauge({
      name: 'server_federation_destinations',
      help: 'Servers with pending events or EDUs, by state',
      labelNames: ['state'],
      collect() {
        for (const [state, count] of Object.entries(sender.status.destinations)) this.set({ state }, count);
      },
    });
    this.#metrics.gauge({
      name: 'server_federation_pending',
      help: 'Events and EDUs in memory that are not acknowledged',
      labelNames: ['kind'],
      collect() {
        const { pendingPdus, pendingEdus } = sender.status;
        this.set({ kind: 'pdu' }, pendingPdus);
        this.set({ kind: 'edu' }, pendingEdus);
      },
    });
    this.#metrics.gauge({
      name: 'server_federation_longest_wait_seconds',
      help: 'Longest time for which a destination has acknowledged nothing',
      collect() {
        this.set(sender.status.longestWait / 1_000);
      },
    });
  }

  /** A transaction to another server was acknowledged. */
  acknowledged(destination: string, { pdus, durable, ephemeral }: Transaction): void {
    this.#sent.inc({ outcome: 'acknowledged' });
    this.#items.inc({ direction: 'sent', kind: 'pdu' }, pdus.length);
    this.#items.inc({ direction: 'sent', kind: 'edu' }, durable.length + ephemeral.length);
    const last = pdus.at(-1);
    if (last && this.#domains.has(destination)) {
      this.#sentAge.set({ server_name: destination }, this.#age(last.originServerTs));
    }
  }

  /** An attempt to deliver a transaction has failed. */
  failed(): void {
    this.#sent.inc({ outcome: 'failed' });
  }

  /** A transaction of another server was received for the first time. */
  received(origin: string, pdus: readonly JsonValue[], edus: readonly JsonValue[]): void {
    this.#received.inc({ kind: 'new' });
    this.#items.inc({ direction: 'received', kind: 'pdu' }, pdus.length);
    this.#items.inc({ direction: 'received', kind: 'edu' }, edus.length);
    const last = pdus.at(-1);
    const sentAt = isJsonObject(last) ? last['origin_server_ts'] : undefined;
    if (this.#domains.has(origin) && typeof sentAt === 'number') {
      this.#receivedAge.set({ server_name: origin }, this.#age(sentAt));
    }
  }

  /** A transaction of another server was received again. */
  repeated(): void {
    this.#received.inc({ kind: 'repeated' });
  }

  /** Seconds since a time in milliseconds since the epoch. */
  #age(time: number): number {
    return Math.max(0, this.#clock.now() - time) / 1_000;
  }
}
