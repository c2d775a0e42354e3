import { type RawBuilder, sql } from 'kysely';
import type { AnyWriter } from '../any-writer.ts';
import type { Reader, Writer } from '../database.ts';
import { writerFor } from '../database.ts';
import type { FullText, TextDocument, TextSearch } from '../full-text/full-text.ts';
import { gramsOf } from '../full-text/grams.ts';
import type { Statement } from '../statement.ts';

/**
 * Returns the statements that create the table and index. Grams are stored as 32-bit hashes: arrays of integers can be
 * indexed without an extension of PostgreSQL, and need half the space that arrays of short texts need.
 */
export const postgresFullTextTable = (name: string): readonly string[] => [
  `create table ${name} (id bigint primary key, scope bigint not null, grams integer[] not null)`,
  `create index ${name}_grams on ${name} using gin (grams)`,
];

/** A full-text index in a table of arrays with an inverted index. */
export class PostgresFullText implements FullText {
  readonly #scanner: Reader<unknown>;
  readonly #table: RawBuilder<unknown>;
  readonly #name: string;

  constructor(scanner: Reader<unknown>, name: string) {
    this.#scanner = scanner;
    this.#name = name;
    this.#table = sql.table(name);
  }

  async put(writer: AnyWriter, documents: readonly TextDocument[]): Promise<void> {
    const database: Writer<unknown> = writerFor(writer);
    for (const { id, scope, text } of documents) {
      await sql`
        insert into ${this.#table} (id, scope, grams)
        values (${id}, ${scope}, cast(${gramNumbers(gramsOf(text))} as integer[]))
        on conflict (id) do update set scope = excluded.scope, grams = excluded.grams`.execute(database);
    }
  }

  async remove(writer: AnyWriter, ids: readonly number[]): Promise<void> {
    const database: Writer<unknown> = writerFor(writer);
    await sql`delete from ${this.#table} where id = any(cast(${list(ids)} as bigint[]))`.execute(database);
  }

  statements(documents: readonly TextDocument[], removed: readonly number[]): Statement[] {
    const put =
      `insert into ${this.#name} (id, scope, grams) values (?, ?, cast(? as integer[])) ` +
      'on conflict (id) do update set scope = excluded.scope, grams = excluded.grams';
    const remove = `delete from ${this.#name} where id = ?`;
    return [
      { sql: put, rows: documents.map(({ id, scope, text }) => [id, scope, gramNumbers(gramsOf(text))]) },
      { sql: remove, rows: removed.map((id) => [id]) },
    ].filter(({ rows }) => rows.length > 0);
  }

  async candidates({ query, scopes, before, limit }: TextSearch): Promise<number[]> {
    if (query.isEmpty || scopes?.length === 0) return [];
    const within = scopes ? sql`and scope = any(cast(${list(scopes)} as bigint[]))` : sql``;
    // Materialized, so that the planner does not scan all documents in order instead.
    const { rows } = await sql<{ id: number }>`
      with found as materialized (
        select id from ${this.#table}
        where grams @> cast(${gramNumbers(query.grams)} as integer[]) ${within}
      )
      select id from found where id < ${before ?? Number.MAX_SAFE_INTEGER}
      order by id desc limit ${limit}`.execute(this.#scanner);
    return rows.map(({ id }) => id);
  }
}

const list = (numbers: Iterable<number>): string => `{${[...numbers].join(',')}}`;

function gramNumbers(grams: Iterable<string>): string {
  return list(new Set([...grams].map(hashOf)));
}

/** Returns the FNV-1a hash of the UTF-16 code units. A hash collision only adds a candidate that does not match. */
function hashOf(gram: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < gram.length; index++) {
    hash = Math.imul(hash ^ gram.charCodeAt(index), 0x01000193);
  }
  return hash | 0;
}
