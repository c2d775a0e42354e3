import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { Jobs } from '../../kernel/jobs/index.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import { badJson, forbidden, invalidParam, type JsonObject, type JsonValue } from '../../protocol/index.ts';
import type { Incoming } from '../../room-federation/index.ts';
import type { EduHandlers } from '../edus/edu-handlers.ts';
import { maxEdus, maxPdus } from '../transaction-limits.ts';
import {
  deleteOldestTransactions,
  deleteTransactionsBefore,
  insertTransaction,
  readTransactionAnswer,
} from './store.ts';
import type { TransactionTables } from './tables.ts';

export interface TransactionsDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly jobs: Jobs;
  readonly incoming: Pick<Incoming, 'receive'>;
  readonly eduHandlers: EduHandlers;
  readonly observer?: TransactionObserver;
}

/** Observes received transactions, for metrics. */
export interface TransactionObserver {
  received(origin: string, pdus: readonly JsonValue[], edus: readonly JsonValue[]): void;
  repeated(origin: string): void;
}

/** Maximum length of a transaction id in characters; ids in use have about twenty. */
const maxTransactionIdLength = 255;

const hour = 3_600_000;

/** Milliseconds for which received transactions are remembered. */
const retention = 24 * hour;

/** Maximum number of received transactions that are remembered. */
const maxRemembered = 1_000_000;

const silentObserver: TransactionObserver = { received: () => undefined, repeated: () => undefined };

/** Processes transactions of other servers: events and EDUs, each transaction once. */
export class Transactions {
  readonly #deps: TransactionsDeps;
  readonly #observer: TransactionObserver;
  /** Transactions that are being processed. */
  readonly #running = new LoadOnce<string, string>();

  /** Registers the job that deletes old transactions; must be called before the jobs start. */
  constructor(deps: TransactionsDeps) {
    this.#deps = deps;
    this.#observer = deps.observer ?? silentObserver;
    deps.jobs.every('federation/forget-transactions', hour, { run: () => this.forget() });
  }

  /**
   * Processes a transaction; a repeated transaction is answered with the same response. Source: server-server API, `PUT
   * /_matrix/federation/v1/send/{txnId}`.
   * @returns the response as JSON
   * @throws MatrixError M_BAD_JSON, M_INVALID_PARAM, and M_FORBIDDEN when `origin` in the body is another server
   */
  async receive(origin: string, txnId: string, body: JsonObject): Promise<string> {
    const transaction = readTransaction(origin, txnId, body);
    const key = `${origin}\0${txnId}`;
    const running = this.#running.get(key);
    if (running) {
      this.#observer.repeated(origin);
      return running;
    }
    return this.#running.run(key, () => this.#once(origin, txnId, transaction));
  }

  async #once(origin: string, txnId: string, { pdus, edus }: ReceivedLists): Promise<string> {
    const { database, clock, incoming, eduHandlers } = this.#deps;
    const storedAnswer = await readTransactionAnswer(database.reader<TransactionTables>(), origin, txnId);
    if (storedAnswer !== undefined) {
      this.#observer.repeated(origin);
      return storedAnswer;
    }
    this.#observer.received(origin, pdus, edus);
    const outcomes = pdus.length === 0 ? {} : await incoming.receive(origin, pdus);
    await eduHandlers.dispatch(origin, edus);
    const answer = JSON.stringify({ pdus: outcomes });
    await database.transaction<TransactionTables, void>((writer) =>
      insertTransaction(writer, { origin, txn_id: txnId, received_ts: clock.now(), answer }),
    );
    return answer;
  }

  /** Deletes old received transactions. @param limit maximum number of transactions that are kept */
  forget(limit = maxRemembered): Promise<void> {
    const { database, clock } = this.#deps;
    return database.transaction<TransactionTables, void>(async (writer) => {
      await deleteTransactionsBefore(writer, clock.now() - retention);
      await deleteOldestTransactions(writer, limit);
    });
  }
}

interface ReceivedLists {
  readonly pdus: readonly JsonValue[];
  readonly edus: readonly JsonValue[];
}

/** Returns the lists of a transaction; their items are not validated. */
export function readTransaction(origin: string, txnId: string, body: JsonObject): ReceivedLists {
  const isId = txnId.length <= maxTransactionIdLength && !txnId.includes('\0') && txnId.isWellFormed();
  if (!isId) throw invalidParam('The transaction id is invalid');
  if (body['origin'] !== undefined && body['origin'] !== origin) {
    throw forbidden('The origin of the transaction is another server');
  }
  const pdus = listIn(body, 'pdus', maxPdus);
  return { pdus, edus: listIn(body, 'edus', maxEdus) };
}

function listIn(body: JsonObject, name: string, limit: number): readonly JsonValue[] {
  const list = body[name] ?? [];
  if (!Array.isArray(list)) throw badJson(`${name} must be a list`);
  if (list.length > limit) throw badJson(`A transaction holds at most ${limit} ${name}`);
  return list as readonly JsonValue[];
}
