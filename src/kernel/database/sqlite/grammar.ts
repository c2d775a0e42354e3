import {
  type CreateTableNode,
  type DataTypeNode,
  type GeneratedNode,
  type SelectModifierNode,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely';
import type { Grammar } from '../queries.ts';

/** The portable types; a table declared with anything else is refused by SQLite, because tables are strict. */
const columnTypes: Record<string, string> = {
  bigint: 'integer',
  integer: 'integer',
  bytea: 'blob',
  'double precision': 'real',
};

/** Writes the portable subset of Kysely's schema and queries in SQLite's words. */
class PortableCompiler extends SqliteQueryCompiler {
  /** Strict, so that a value of the wrong type is refused as it is on PostgreSQL. */
  protected override visitCreateTable(node: CreateTableNode): void {
    super.visitCreateTable(node);
    this.append(node.endModifiers?.length ? ', strict' : ' strict');
  }

  protected override visitDataType(node: DataTypeNode): void {
    this.append(columnTypes[node.dataType] ?? node.dataType);
  }

  /** `integer primary key` is an identity already. */
  protected override visitGenerated(node: GeneratedNode): void {
    if (!node.identity) super.visitGenerated(node);
  }

  /** `for update` and the like: a writer is alone anyway. */
  protected override visitSelectModifier(node: SelectModifierNode): void {
    const locks = ['ForUpdate', 'ForNoKeyUpdate', 'ForShare', 'ForKeyShare', 'NoWait', 'SkipLocked'];
    if (!node.modifier || !locks.includes(node.modifier)) super.visitSelectModifier(node);
  }
}

/** Connections are shared, so that Kysely must not make queries wait for each other. */
class SharedAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}

export const sqliteGrammar: Grammar = {
  createAdapter: () => new SharedAdapter(),
  createQueryCompiler: () => new PortableCompiler(),
  createIntrospector: (db) => new SqliteIntrospector(db),
};
