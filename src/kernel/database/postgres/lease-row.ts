import { hostname } from 'node:os';
import { DatabaseError } from '../errors.ts';
import type { Session } from './session.ts';

/** Current time in milliseconds by the database server's clock, not the start of the transaction. */
const now = '(extract(epoch from clock_timestamp()) * 1000)::bigint';

/** SQLSTATE of a lock timeout. */
const lockNotAvailable = '55P03';

/** Milliseconds to wait for open transactions of a holder whose lease has expired; a paused holder never ends them. */
const lockTimeout = 1_000;

/**
 * The server that took the lease on writing last. While it renews the lease, no other server may write; `remaining` says
 * whether the lease has expired or was released.
 */
export interface LeaseHolder {
  /** Fencing token: increases whenever a server takes the lease. */
  readonly epoch: number;
  readonly host: string;
  readonly pid: number;
  /** Milliseconds since the epoch. */
  readonly takenTs: number;
  /** Changes with each renewal. */
  readonly expiresTs: number;
  /** Milliseconds until the lease expires; zero or negative when it has expired. */
  readonly remaining: number;
}

/** Reads the last holder of the lease; `undefined` when no server has had it. */
export async function readHolder(session: Session): Promise<LeaseHolder | undefined> {
  const { rows } = await session.run(
    `select epoch, host, pid, taken_ts as "takenTs", expires_ts as "expiresTs", expires_ts - ${now} as remaining
      from writer_lease where name = 'writer'`,
    [],
  );
  return rows[0] as unknown as LeaseHolder | undefined;
}

/**
 * Takes a lease that has expired or was released. The lock waits for open transactions of the last holder and blocks
 * new ones, so that afterwards no transaction with an older epoch can commit.
 * @param time milliseconds until the new lease expires
 * @returns the epoch; `undefined` when the holder has renewed the lease meanwhile
 */
export async function takeLease(session: Session, time: number): Promise<number | undefined> {
  await lockTable(session);
  const { rows } = await session.run(
    `insert into writer_lease (name, epoch, host, pid, taken_ts, expires_ts)
      values ('writer', 1, ?, ?, ${now}, ${now} + ?)
      on conflict (name) do update set epoch = writer_lease.epoch + 1, host = excluded.host, pid = excluded.pid,
        taken_ts = excluded.taken_ts, expires_ts = excluded.expires_ts
      where writer_lease.expires_ts <= ${now}
      returning epoch`,
    [hostname(), process.pid, time],
  );
  await session.control('commit');
  return rows[0]?.['epoch'] as number | undefined;
}

/**
 * Begins a transaction that excludes all other transactions that write. Terminates the connections of a holder that
 * leaves its transactions open.
 */
async function lockTable(session: Session): Promise<void> {
  for (;;) {
    await session.control('begin isolation level read committed');
    try {
      await session.control(`set local lock_timeout = ${lockTimeout}`);
      await session.control('lock table writer_lease in exclusive mode');
      return;
    } catch (error) {
      await session.control('rollback');
      if (!(error instanceof DatabaseError) || error.code !== lockNotAvailable) throw error;
      await session.run(
        `select pg_terminate_backend(pid) from pg_locks
          where relation = 'writer_lease'::regclass and granted and mode = 'RowShareLock'
            and database = (select oid from pg_database where datname = current_database())`,
        [],
      );
    }
  }
}

/** Extends the lease to `time` milliseconds from now. @returns false when another server has taken it */
export async function renewLease(session: Session, epoch: number, time: number): Promise<boolean> {
  const { changes } = await session.run(
    `update writer_lease set expires_ts = ${now} + ? where name = 'writer' and epoch = ?`,
    [time, epoch],
  );
  return changes === 1;
}

/** Releases the lease: another server can take it at once. */
export async function releaseLease(session: Session, epoch: number): Promise<void> {
  await session.run(`update writer_lease set expires_ts = 0 where name = 'writer' and epoch = ?`, [epoch]);
}

/**
 * A statement that keeps other servers from taking the lease until the transaction ends, and waits for a server that is
 * taking it. Sent with the BEGIN of each transaction that writes, before its first query, because the snapshot must
 * show the holder after the wait. A lock on the table does not block renewals, as a lock on the row would.
 */
export const leaseLock = 'lock table writer_lease in row share mode';

/** Whether the lease has this epoch. After `leaseLock` that does not change until the transaction ends. */
export async function holdsLease(session: Session, epoch: number): Promise<boolean> {
  const { rows } = await session.run(`select epoch from writer_lease where name = 'writer' and epoch = ?`, [
    epoch,
  ]);
  return rows.length > 0;
}
