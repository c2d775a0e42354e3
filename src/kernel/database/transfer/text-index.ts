import type { Database } from '../database.ts';
import type { TextDocument } from '../full-text/full-text.ts';
import { CopyDiffers } from './copy-table.ts';
import { query, quoted, type TransferDatabase } from './transfer-database.ts';

/**
 * A full-text index. It is stored in another form on each kind of database and contains no texts, so it is copied by
 * making its documents again. Slices declare their indexes in their manifests.
 */
export interface TextIndex {
  /** The name that was passed to `SchemaBuilder.fullText`. */
  readonly name: string;
  /** Whether the text of a document can change while its id stays the same. */
  readonly changes: boolean;
  /** Returns the documents with these ids; ids whose document was deleted are absent. */
  documents(database: Database, ids: readonly number[]): Promise<TextDocument[]>;
}

export interface CopyTextIndex {
  readonly source: TransferDatabase;
  readonly target: TransferDatabase;
  readonly index: TextIndex;
  /** Whether no other process writes to the source. If so, each piece is compared after it was written. */
  readonly isExclusive: boolean;
  /** Called after each piece with the number of its documents. */
  onRows(rows: number): void;
}

/** Maximum number of documents that are made at a time: the event of each may have 64 KiB. */
const documentsAtOnce = 250;

/**
 * Makes the documents of an index in the target equal to those in the source.
 * @returns the number of documents
 * @throws CopyDiffers when the documents of the target differ right after they were written
 */
export async function copyTextIndex({
  source,
  target,
  index,
  isExclusive,
  onRows,
}: CopyTextIndex): Promise<number> {
  let count = 0;
  for (let after = 0; ; ) {
    const ids = await idsIn(source, index.name, { after, limit: documentsAtOnce });
    const isEnd = ids.length < documentsAtOnce;
    const upTo = isEnd ? Number.MAX_SAFE_INTEGER : (ids.at(-1) ?? after);
    const copied = await allIdsIn(target, index.name, after, upTo);
    if (index.changes || !areSame(ids, copied)) {
      const documents = ids.length > 0 ? await index.documents(source.database, ids) : [];
      const wanted = documents.map(({ id }) => id).sort((a, b) => a - b);
      await writeDocuments(target.database, index, documents, unwantedIds(copied, wanted));
      if (isExclusive && !areSame(wanted, await allIdsIn(target, index.name, after, upTo)))
        throw new CopyDiffers(`the full-text index ${index.name} differs after it was copied`);
      count += wanted.length;
    } else count += ids.length;
    onRows(ids.length);
    if (isEnd) return count;
    after = upTo;
  }
}

async function writeDocuments(
  database: Database,
  { name }: TextIndex,
  documents: readonly TextDocument[],
  removed: readonly number[],
): Promise<void> {
  const statements = database.fullText(name).statements(documents, removed);
  if (statements.length > 0) await database.batch(statements);
}

async function idsIn(
  side: TransferDatabase,
  name: string,
  { after, limit }: { readonly after: number; readonly limit: number },
): Promise<number[]> {
  const id = side.kind === 'sqlite' ? 'rowid' : 'id';
  const rows = await query(
    side,
    `select ${id} as id from ${quoted(name)} where ${id} > ? order by ${id} limit ${limit}`,
    [after],
  );
  return rows.map((row) => Number(row['id']));
}

async function allIdsIn(
  side: TransferDatabase,
  name: string,
  after: number,
  upTo: number,
): Promise<number[]> {
  const found: number[] = [];
  for (let from = after; ; ) {
    const ids = await idsIn(side, name, { after: from, limit: documentsAtOnce });
    found.push(...ids.filter((id) => id <= upTo));
    from = ids.at(-1) ?? upTo;
    if (ids.length < documentsAtOnce || from >= upTo) return found;
  }
}

const areSame = (ids: readonly number[], otherIds: readonly number[]): boolean =>
  ids.length === otherIds.length && ids.every((id, index) => id === otherIds[index]);

/** Returns the ids of `copied` that are not in `wanted`. */
function unwantedIds(copied: readonly number[], wanted: readonly number[]): number[] {
  const known = new Set(wanted);
  return copied.filter((id) => !known.has(id));
}
