import { Client } from 'pg';
import { connectionTo } from './postgres-server.ts';

/**
 * Restores PostgreSQL databases to their contents after migration: deleting the few rows that a test wrote
 * takes a tenth of the time of creating and dropping a database.
 */

/**
 * Notes each change of the schema in `changes.made`: a transaction that is rolled back leaves no note. A comparison
 * of the catalogs would find the same changes, but would make restoring slower.
 */
const watchSql = `
  create schema changes;
  create table changes.made (command text);
  create function changes.note() returns event_trigger language plpgsql as $$
    begin
      if tg_event = 'ddl_command_end' then
        -- No rows for CREATE TABLE IF NOT EXISTS of a table that exists.
        insert into changes.made select tg_tag from pg_event_trigger_ddl_commands();
      else
        insert into changes.made values (tg_tag);
      end if;
    end $$;
  create event trigger note_created on ddl_command_end execute function changes.note();
  create event trigger note_dropped on sql_drop execute function changes.note();
  truncate changes.made`;

/** Copies each table that has rows into the schema `kept`. */
const saveSql = `
  do $$
  declare
    relation record;
    filled boolean;
  begin
    create schema kept;
    for relation in select relname from pg_class
      where relnamespace = 'public'::regnamespace and relkind = 'r' loop
      execute format('select exists (select from public.%I)', relation.relname) into filled;
      if filled then execute format('create table kept.%I as table public.%I', relation.relname, relation.relname); end if;
    end loop;
  end $$`;

/**
 * Replaces the rows of all tables by those in the schema `kept`, with triggers and foreign keys disabled. Finds the tables
 * that have had rows by the sizes of their files, because `pg_relation_size` opens each table.
 */
const restoreSql = `
  do $$
  declare
    relation record;
  begin
    set local session_replication_role = replica;
    for relation in select relname from pg_class
      where relnamespace = 'public'::regnamespace and relkind = 'r'
        and (pg_stat_file(pg_relation_filepath(oid), true)).size > 0 loop
      execute format('delete from public.%I', relation.relname);
    end loop;
    for relation in select relname from pg_class where relnamespace = 'kept'::regnamespace and relkind = 'r' loop
      execute format('insert into public.%I table kept.%I', relation.relname, relation.relname);
    end loop;
    for relation in select oid from pg_class where relnamespace = 'public'::regnamespace and relkind = 'S' loop
      perform setval(relation.oid::regclass, seqstart, false) from pg_sequence where seqrelid = relation.oid;
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
    await client.query(watchSql);
  });
}

/**
 * Restores the saved contents.
 * @returns false when a test changed the schema; the database is then unusable
 */
export async function restoreContents(port: number, name: string): Promise<boolean> {
  return inDatabase(port, name, async (client) => {
    await client.query(disconnectOthers);
    const { rowCount } = await client.query('select from changes.made limit 1');
    if (rowCount) return false;
    await client.query(restoreSql);
    return true;
  });
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
