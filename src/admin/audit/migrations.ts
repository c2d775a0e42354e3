import type { Migration } from '../../kernel/database/index.ts';

export const auditMigrations: readonly Migration[] = [
  {
    name: 'admin/0001-audit-log',
    async up({ db }) {
      await db.schema
        .createTable('audit_log')
        .addColumn('id', 'bigint', (column) => column.primaryKey().generatedByDefaultAsIdentity())
        .addColumn('ts', 'bigint', (column) => column.notNull())
        .addColumn('administrator', 'text', (column) => column.notNull())
        .addColumn('method', 'text', (column) => column.notNull())
        .addColumn('path', 'text', (column) => column.notNull())
        .addColumn('operation', 'text', (column) => column.notNull())
        .addColumn('target', 'text')
        .addColumn('status', 'integer', (column) => column.notNull())
        .addColumn('ip', 'text', (column) => column.notNull())
        .addColumn('is_change', 'integer', (column) => column.notNull())
        .execute();
      await db.schema
        .createIndex('audit_log_by_change')
        .on('audit_log')
        .columns(['is_change', 'id'])
        .execute();
      await db.schema.createIndex('audit_log_by_ts').on('audit_log').column('ts').execute();
    },
  },
  {
    name: 'admin/0003-repeated-reads',
    async up({ db, run }) {
      for (const column of ['requests', 'last_ts'] as const) {
        await db.schema
          .alterTable('audit_log')
          .addColumn(column, 'bigint', (definition) =>
            definition.notNull().defaultTo(column === 'requests' ? 1 : 0),
          )
          .execute();
      }
      await run('UPDATE audit_log SET last_ts = ts');
    },
  },
];
