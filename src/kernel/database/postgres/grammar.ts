import { type DataTypeNode, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from 'kysely';
import type { Grammar } from '../queries.ts';

/** Writes the portable types in PostgreSQL's words. */
class PortableCompiler extends PostgresQueryCompiler {
  /** Text is ordered and compared by code point, as on SQLite, whatever the locale of the server's database. */
  protected override visitDataType(node: DataTypeNode): void {
    this.append(node.dataType === 'text' && this.#declaresColumn() ? 'text collate "C"' : node.dataType);
  }

  /** Not a cast, which takes no collation. */
  #declaresColumn(): boolean {
    return this.parentNode?.kind === 'ColumnDefinitionNode';
  }
}

export const postgresGrammar: Grammar = {
  createAdapter: () => new PostgresAdapter(),
  createQueryCompiler: () => new PortableCompiler(),
  createIntrospector: (db) => new PostgresIntrospector(db),
};
