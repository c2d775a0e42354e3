import { hostname } from 'node:os';
import { DatabaseError } from '../errors.ts';
import type { Session } from './session.ts';

/** Milliseconds since the epoch by the server's clock, also within a transaction. */
const now = '(extract(epoch from clock_timestamp()) * 1000)::bigint';

/** SQLSTATE of a lock that was not granted in time. */
const lockNotAvailable = '55P03';

/** Milliseconds to wait for the transactions of a holder whose lease has expired; a paused one never ends its own. */
const lockTimeout = 1_000;

/** Which server has the lease. */
export interface LeaseHolder {
  /** Grows with each server that takes the lease. */
  readonly epoch: number;
  readonly host: string;
  readonly pid: number;
  /** Milliseconds since the epoch. */
  readonly takenTs: number;
  /** Changes with each renewal. */
  readonly expiresTs: number;
  /** Milliseconds until the lease expires; not positive when it has. */
  readonly remaining: number;
}

/** Reads the holder of the lease, `undefined` when no server ever had it. */
export async function readHolder(session: Session): Promise<LeaseHolder | undefined> {
  const { rows } = await session.run(
    `select epoch, host, pid, taken_ts as "takenTs", expires_ts as "expiresTs", expires_ts - ${now} as remaining
      from writer_lease where name = 'writer'`,
    [],
  );
  return rows[0] as unknown as LeaseHolder | undefined;
}

/**
 * Takes a lease that has expired or was given back. The lock waits for transactions of the last holder that are about
 * to commit, and keeps others from beginning: after this, none that carries an older epoch can commit.
 * @param time milliseconds for which it holds
 * @returns the epoch; `undefined` when the holder has renewed it meanwhile
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

/** Begins a transaction in which no other may write. Ends the connections of a holder that does not end its own. */
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

/** Makes the lease hold for `time` milliseconds from now on. @returns whether it is still of this epoch */
export async function renewLease(session: Session, epoch: number, time: number): Promise<boolean> {
  const { changes } = await session.run(
    `update writer_lease set expires_ts = ${now} + ? where name = 'writer' and epoch = ?`,
    [time, epoch],
  );
  return changes === 1;
}

/** Gives the lease back: another server may take it at once. */
export async function releaseLease(session: Session, epoch: number): Promise<void> {
  await session.run(`update writer_lease set expires_ts = 0 where name = 'writer' and epoch = ?`, [epoch]);
}

/**
 * Waits for a server that is taking the lease, and keeps others from taking it before the transaction ends. Goes with
 * the BEGIN of each transaction that writes, before the first query: its snapshot must show who has the lease after the
 * wait. A lock on the table is not in the way of renewals, as one on the row would be.
 */
export const leaseLock = 'lock table writer_lease in row share mode';

/** Whether the lease is of this epoch; after `leaseLock` that stays so until the transaction ends. */
export async function holdsLease(session: Session, epoch: number): Promise<boolean> {
  const { rows } = await session.run(`select epoch from writer_lease where name = 'writer' and epoch = ?`, [
    epoch,
  ]);
  return rows.length > 0;
}
