import type { AnyWriter } from '../any-writer.ts';
import type { Statement } from '../statement.ts';
import type { TextQuery } from './grams.ts';

/** A text that can be found. */
export interface TextDocument {
  /** Names the document in its index; later documents should have higher numbers. */
  readonly id: number;
  /** What it belongs to, for instance a room: searches can be restricted to some scopes. */
  readonly scope: number;
  readonly text: string;
}

export interface TextSearch {
  readonly query: TextQuery;
  /** Absent: all. */
  readonly scopes?: readonly number[];
  /** Only documents with lower ids: where the last page ended. */
  readonly before?: number;
  readonly limit: number;
}

/**
 * An index of texts, made by `SchemaBuilder.fullText` and opened by `Database.fullText`. It keeps what a text is found
 * by, not the text itself: whoever searches has it, and asks `TextQuery.matches` about each candidate.
 */
export interface FullText {
  /** Adds documents, or replaces those with the same ids. */
  put(writer: AnyWriter, documents: readonly TextDocument[]): Promise<void>;
  remove(writer: AnyWriter, ids: readonly number[]): Promise<void>;
  /** What `put` and `remove` do, for `Database.batch`: without holding up other writers for each document. */
  statements(documents: readonly TextDocument[], removed: readonly number[]): Statement[];
  /**
   * The ids of the documents that may match, highest first: all that do, and few that do not. None for an empty query.
   */
  candidates(search: TextSearch): Promise<number[]>;
}
