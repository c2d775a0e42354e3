import type { AnyWriter } from '../any-writer.ts';
import type { Statement } from '../statement.ts';
import type { TextQuery } from './grams.ts';

/** A text in a full-text index. */
export interface TextDocument {
  /** Id of the document in its index. Later documents should have higher ids, because searches return these first. */
  readonly id: number;
  /** The group of the document, for example a room: searches can be restricted to some scopes. */
  readonly scope: number;
  readonly text: string;
}

export interface TextSearch {
  readonly query: TextQuery;
  /** The scopes that are searched; by default all. */
  readonly scopes?: readonly number[];
  /** The last id of the previous page: only documents with lower ids are found. */
  readonly before?: number;
  readonly limit: number;
}

/**
 * A full-text index, created by `SchemaBuilder.fullText` and opened by `Database.fullText`. It stores only the grams
 * (short pieces of words) of a text. The caller has the texts and checks each candidate with `TextQuery.matches`.
 */
export interface FullText {
  /** Adds documents; replaces documents with the same ids. */
  put(writer: AnyWriter, documents: readonly TextDocument[]): Promise<void>;
  remove(writer: AnyWriter, ids: readonly number[]): Promise<void>;
  /**
   * Returns the statements of `put` and `remove`, for `Database.batch`, which blocks other writers less than single
   * statements.
   */
  statements(documents: readonly TextDocument[], removed: readonly number[]): Statement[];
  /**
   * Returns ids of documents that may match, highest first: all matching documents and few others. None for
   * an empty query.
   */
  candidates(search: TextSearch): Promise<number[]>;
}
