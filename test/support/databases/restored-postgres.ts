import { Client } from 'pg';
import { connectionTo } from './postgres-server.ts';

/**
 * Restores PostgreSQL databases to their contents after migration: deleting the few rows that a test wrote
 * takes a tenth of the time of creating and dropping a database.
 */

/** A hash that changes when tables, columns, indexes, triggers or functions change. */
const schemaHashSql = `
  select md5(string_agg(part, ',' order by part)) as shape from (
    select format('%s.%s %s %s', relname, attname, atttypid, attnotnull) as part
      from pg_class join pg_attribute on attrelid = pg_class.oid
      where relnamespace = 'public'::regnamespace and attnum > 0
    union all select pg_get_triggerdef(oid) from pg_trigger
    union all select pg_get_functiondef(oid) from pg_proc where pronamespace = 'public'::regnamespace
  ) as parts`;

const saveSql = `
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

/** Disables triggers and foreign keys while rows are replaced. */
const restoreSql = `
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

/** Reads the function behind the view `pg_stat_activity`, because the view joins more tables and takes twice as long. */
const disconnectOthers = `
  select pg_terminate_backend(pid, 5000) from pg_stat_get_activity(null)
    where datid = (select oid from pg_database where datname = current_database()) and pid <> pg_backend_pid()`;

/**
 * Saves the contents of a database that has just been migrated; call it once, before the database is copied.
 */
export async function saveContents(port: number, name: string): Promise<void> {
  await inDatabase(port, name, async (client) => {
    await client.query(saveSql);
    await client.query(`comment on schema kept is '${await schemaHashOf(client)}'`);
  });
}

/**
 * Restores the saved contents.
 * @returns false when a test changed the schema; the database is then unusable
 */
export async function restoreContents(port: number, name: string): Promise<boolean> {
  return inDatabase(port, name, async (client) => {
    await client.query(disconnectOthers);
    const { rows } = await client.query(`select obj_description('kept'::regnamespace) as shape`);
    if ((await schemaHashOf(client)) !== rows[0].shape) return false;
    await client.query(restoreSql);
    return true;
  });
}

async function schemaHashOf(client: Client): Promise<string> {
  const { rows } = await client.query<{ shape: string }>(schemaHashSql);
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
