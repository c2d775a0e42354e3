import { Client } from 'pg';
import { connectionTo } from './postgres-server.ts';

/**
 * Databases of PostgreSQL that are made as they were when they had been migrated: deleting the few rows that a test
 * wrote takes a tenth of the time in which PostgreSQL makes a database and forgets another.
 */

/** A text that differs when tables, columns, indexes or triggers do. */
const shape = `
  select md5(string_agg(part, ',' order by part)) as shape from (
    select format('%s.%s %s %s', relname, attname, atttypid, attnotnull) as part
      from pg_class join pg_attribute on attrelid = pg_class.oid
      where relnamespace = 'public'::regnamespace and attnum > 0
    union all select pg_get_triggerdef(oid) from pg_trigger
    union all select pg_get_functiondef(oid) from pg_proc where pronamespace = 'public'::regnamespace
  ) as parts`;

const remember = `
  do $$
  declare
    one record;
    filled boolean;
  begin
    create schema kept;
    for one in select relname from pg_class
      where relnamespace = 'public'::regnamespace and relkind = 'r' loop
      execute format('select exists (select from public.%I)', one.relname) into filled;
      if filled then execute format('create table kept.%I as table public.%I', one.relname, one.relname); end if;
    end loop;
  end $$`;

/** Neither triggers nor references count while rows come and go. */
const restore = `
  do $$
  declare
    one record;
  begin
    set local session_replication_role = replica;
    for one in select relname from pg_class
      where relnamespace = 'public'::regnamespace and relkind = 'r' and pg_relation_size(oid) > 0 loop
      execute format('delete from public.%I', one.relname);
    end loop;
    for one in select relname from pg_class where relnamespace = 'kept'::regnamespace and relkind = 'r' loop
      execute format('insert into public.%I table kept.%I', one.relname, one.relname);
    end loop;
    for one in select oid from pg_class where relnamespace = 'public'::regnamespace and relkind = 'S' loop
      perform setval(one.oid::regclass, seqstart, false) from pg_sequence where seqrelid = one.oid;
    end loop;
  end $$`;

const disconnectOthers = `
  select pg_terminate_backend(pid, 5000) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`;

/** To be called once, in a database that has just been migrated, before anybody copies it. */
export async function saveContents(port: number, name: string): Promise<void> {
  await inDatabase(port, name, async (client) => {
    await client.query(remember);
    await client.query(`comment on schema kept is '${await shapeOf(client)}'`);
  });
}

/** @returns whether the database is as new again; not if a test changed its schema. */
export async function restoreContents(port: number, name: string): Promise<boolean> {
  return inDatabase(port, name, async (client) => {
    await client.query(disconnectOthers);
    const { rows } = await client.query(`select obj_description('kept'::regnamespace) as shape`);
    if ((await shapeOf(client)) !== rows[0].shape) return false;
    await client.query(restore);
    return true;
  });
}

async function shapeOf(client: Client): Promise<string> {
  const { rows } = await client.query<{ shape: string }>(shape);
  return rows[0]!.shape;
}

async function inDatabase<T>(port: number, name: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client(connectionTo(port, name));
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
