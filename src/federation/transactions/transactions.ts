import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { Jobs } from '../../kernel/jobs/index.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import { badJson, forbidden, invalidParam, type JsonObject, type JsonValue } from '../../protocol/index.ts';
import type { Incoming } from '../../room-federation/index.ts';
import type { EduHandlers } from '../edus/edu-handlers.ts';
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
  readonly incoming: Pick<Incoming, 'receive'>;
  readonly eduHandlers: EduHandlers;
  readonly observer?: TransactionObserver;
}

/** Is told what other servers send. */
export interface TransactionObserver {
  received(origin: string, pdus: readonly JsonValue[], edus: readonly JsonValue[]): void;
  repeated(origin: string): void;
}

/** Source: server-server API, "Transactions". */
const [maxPdus, maxEdus] = [50, 100];

/** Characters of a transaction id; those in use have some twenty. */
const longestTransactionId = 255;

const hour = 3_600_000;

/** Milliseconds for which a repeated transaction is known to be one, and how many are known at most. */
const [memory, maxRemembered] = [24 * hour, 1_000_000];

const silentObserver: TransactionObserver = { received: () => undefined, repeated: () => undefined };

/** What other servers send of their own accord: events and EDUs, in transactions that take effect once. */
export class Transactions {
  readonly #deps: TransactionsDeps;
  readonly #observer: TransactionObserver;
  /** Those that are being worked on. */
  readonly #running = new LoadOnce<string, string>();

  constructor(deps: TransactionsDeps) {
    this.#deps = deps;
    this.#observer = deps.observer ?? silentObserver;
  }

  /**
   * Takes a transaction; one that is known is answered as it was.
   * Source: server-server API, `PUT /_matrix/federation/v1/send/{txnId}`.
   * @returns the answer as JSON
   * @throws MatrixError M_BAD_JSON, M_INVALID_PARAM, and M_FORBIDDEN when it says to be from another server
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

  /** Forgets transactions whose servers have long given up repeating them. */
  registerUpkeep(jobs: Jobs): void {
    jobs.every('federation/forget-transactions', hour, { run: () => this.forget() });
  }

  async #once(origin: string, txnId: string, { pdus, edus }: Received): Promise<string> {
    const { database, clock, incoming, eduHandlers } = this.#deps;
    const known = await readTransactionAnswer(database.reader<TransactionTables>(), origin, txnId);
    if (known !== undefined) {
      this.#observer.repeated(origin);
      return known;
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

  /** One round of the upkeep. @param most how many transactions are remembered */
  forget(most = maxRemembered): Promise<void> {
    const { database, clock } = this.#deps;
    return database.transaction<TransactionTables, void>(async (writer) => {
      await deleteTransactionsBefore(writer, clock.now() - memory);
      await deleteOldestTransactions(writer, most);
    });
  }
}

interface Received {
  readonly pdus: readonly JsonValue[];
  readonly edus: readonly JsonValue[];
}

/** The parts of a transaction. What is in them nobody has looked at. */
export function readTransaction(origin: string, txnId: string, body: JsonObject): Received {
  const isId = txnId.length <= longestTransactionId && !txnId.includes('\0') && txnId.isWellFormed();
  if (!isId) throw invalidParam('This is not the id of a transaction');
  if (body['origin'] !== undefined && body['origin'] !== origin) {
    throw forbidden('The transaction is of another server');
  }
  const pdus = listIn(body, 'pdus', maxPdus);
  return { pdus, edus: listIn(body, 'edus', maxEdus) };
}

function listIn(body: JsonObject, name: string, most: number): readonly JsonValue[] {
  const list = body[name] ?? [];
  if (!Array.isArray(list)) throw badJson(`${name} must be a list`);
  if (list.length > most) throw badJson(`A transaction holds at most ${most} ${name}`);
  return list as readonly JsonValue[];
}
