import type { Destinations, TransactionsApi } from '../../../federation-client/index.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Database } from '../../../kernel/database/index.ts';
import type { Logger } from '../../../kernel/observability/index.ts';
import type { CatchUp } from '../events/catch-up.ts';
import type { DeliveryProgress } from '../events/delivery-progress.ts';
import type { RetainedTransactions } from '../transactions/retained-transactions.ts';
import type { Transaction } from '../transactions/transaction.ts';
import type { SendSlots } from './send-slots.ts';

/** Dependencies that all queues share. */
export interface QueueDeps {
  readonly serverName: string;
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  readonly destinations: Pick<Destinations, 'get' | 'backoffUntil' | 'recordFailure'>;
  readonly api: Pick<TransactionsApi, 'send'>;
  readonly progress: DeliveryProgress;
  readonly catchUp: CatchUp;
  readonly retained: RetainedTransactions;
  /**
   * Slots for simultaneous deliveries. Deliveries to unproven servers, which may be unreachable, have slots of their
   * own, so that they do not use up the slots of healthy servers.
   */
  readonly slots: { readonly healthy: SendSlots; readonly unproven: SendSlots };
  /** Aborted when the server stops. */
  readonly stopping: AbortSignal;
  /** Returns a unique transaction id. */
  nextTransactionId(): string;
  /** Called when there may be progress to save. */
  onActivity(): void;
  readonly observer: SenderObserver;
}

/** Observes deliveries, for metrics. */
export interface SenderObserver {
  acknowledged(destination: string, transaction: Transaction): void;
  failed(destination: string): void;
}
