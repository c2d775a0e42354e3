import type { Destinations, TransactionsApi } from '../../../federation-client/index.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Database } from '../../../kernel/database/index.ts';
import type { Logger } from '../../../kernel/observability/index.ts';
import type { CatchUp } from '../events/catch-up.ts';
import type { DeliveryProgress } from '../events/delivery-progress.ts';
import type { RetainedTransactions } from '../transactions/retained-transactions.ts';
import type { Transaction } from '../transactions/transaction.ts';
import type { SendSlots } from './send-slots.ts';

/** What the queues of all destinations share. */
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
  /** Those who are doing well do not wait for those of whom that is not known. */
  readonly slots: { readonly healthy: SendSlots; readonly unproven: SendSlots };
  /** Aborts when the server stops. */
  readonly stopping: AbortSignal;
  /** An id for a transaction that no other one has had. */
  nextTransactionId(): string;
  /** There may be something to note, now or soon. */
  onActivity(): void;
  readonly observer: SenderObserver;
}

/** Is told how sending goes. */
export interface SenderObserver {
  acknowledged(destination: string, transaction: Transaction): void;
  failed(destination: string): void;
}
