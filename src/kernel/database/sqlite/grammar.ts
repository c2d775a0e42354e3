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

/** SQLite types of the portable types. Tables are strict, so SQLite rejects any other type. */
const columnTypes: Record<string, string> = {
  bigint: 'integer',
  integer: 'integer',
  bytea: 'blob',
  'double precision': 'real',
};

/** Compiles the portable subset of Kysely's schema and queries for SQLite. */
class PortableCompiler extends SqliteQueryCompiler {
  /** Makes tables strict, so that values of a wrong type are rejected as on PostgreSQL. */
  protected override visitCreateTable(node: CreateTableNode): void {
    super.visitCreateTable(node);
    this.append(node.endModifiers?.length ? ', strict' : ' strict');
  }

  protected override visitDataType(node: DataTypeNode): void {
    this.append(columnTypes[node.dataType] ?? node.dataType);
  }

  /** `integer primary key` already is an identity column. */
  protected override visitGenerated(node: GeneratedNode): void {
    if (!node.identity) super.visitGenerated(node);
  }

  /** Drops `for update` and similar locks: SQLite has only one writer. */
  protected override visitSelectModifier(node: SelectModifierNode): void {
    const locks = ['ForUpdate', 'ForNoKeyUpdate', 'ForShare', 'ForKeyShare', 'NoWait', 'SkipLocked'];
    if (!node.modifier || !locks.includes(node.modifier)) super.visitSelectModifier(node);
  }
}

/** Connections are shared, so Kysely must not serialize queries. */
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
