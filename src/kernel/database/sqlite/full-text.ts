import { type RawBuilder, sql } from 'kysely';
import type { AnyWriter } from '../any-writer.ts';
import type { Reader, Writer } from '../database.ts';
import { writerFor } from '../database.ts';
import type { FullText, TextDocument, TextSearch } from '../full-text/full-text.ts';
import { gramsOf } from '../full-text/grams.ts';
import type { Statement } from '../statement.ts';

/** First character of the token for a document's scope; no gram contains it. */
const scopeMark = '\uE000';

/**
 * Returns the statement that creates the table. Grams are separated by spaces, so the simplest tokenizer suffices: for
 * it, every non-ASCII character is part of a token.
 */
export const sqliteFullTextTable = (name: string) =>
  `create virtual table ${name} using fts5(grams, content='', contentless_delete=1, detail=none, tokenize='ascii')`;

/** A full-text index in an FTS5 table that stores neither texts nor positions of grams. */
export class SqliteFullText implements FullText {
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
    for (const document of documents) {
      const { id } = document;
      await sql`insert or replace into ${this.#table} (rowid, grams) values (${id}, ${tokensOf(document)})`.execute(
        database,
      );
    }
  }

  async remove(writer: AnyWriter, ids: readonly number[]): Promise<void> {
    const database: Writer<unknown> = writerFor(writer);
    for (const id of ids) await sql`delete from ${this.#table} where rowid = ${id}`.execute(database);
  }

  statements(documents: readonly TextDocument[], removed: readonly number[]): Statement[] {
    const put = `insert or replace into ${this.#name} (rowid, grams) values (?, ?)`;
    const remove = `delete from ${this.#name} where rowid = ?`;
    return [
      { sql: put, rows: documents.map((document) => [document.id, tokensOf(document)]) },
      { sql: remove, rows: removed.map((id) => [id]) },
    ].filter(({ rows }) => rows.length > 0);
  }

  async candidates({ query, scopes, before, limit }: TextSearch): Promise<number[]> {
    if (query.isEmpty || scopes?.length === 0) return [];
    const grams = [...query.grams].map((gram) => `"${gram}"`).join(' AND ');
    const within = scopes?.map((scope) => `"${scopeMark}${scope}"`).join(' OR ');
    const expression = within === undefined ? grams : `(${within}) AND ${grams}`;
    const { rows } = await sql<{ id: number }>`
      select rowid as id from ${this.#table}
      where ${this.#table} match ${expression} and rowid < ${before ?? Number.MAX_SAFE_INTEGER}
      order by rowid desc limit ${limit}`.execute(this.#scanner);
    return rows.map(({ id }) => id);
  }
}

function tokensOf({ scope, text }: TextDocument): string {
  return `${scopeMark}${scope} ${[...gramsOf(text)].join(' ')}`;
}
