import { type DataTypeNode, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from 'kysely';
import type { Grammar } from '../queries.ts';

/** Compiles the portable types for PostgreSQL. */
class PortableCompiler extends PostgresQueryCompiler {
  /** Orders and compares text by code point as on SQLite, independent of the locale of the database. */
  protected override visitDataType(node: DataTypeNode): void {
    this.append(node.dataType === 'text' && this.#declaresColumn() ? 'text collate "C"' : node.dataType);
  }

  /** Whether the type belongs to the declaration of a column; false in a cast, where a collation is not allowed. */
  #declaresColumn(): boolean {
    return this.parentNode?.kind === 'ColumnDefinitionNode';
  }
}

export const postgresGrammar: Grammar = {
  createAdapter: () => new PostgresAdapter(),
  createQueryCompiler: () => new PortableCompiler(),
  createIntrospector: (db) => new PostgresIntrospector(db),
};
