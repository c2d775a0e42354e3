import type { Migration } from '../../database/index.ts';

export const jobMigrations: readonly Migration[] = [
  {
    name: 'jobs/0001-jobs',
    async up(schema) {
      await schema.db.schema
        .createTable('jobs')
        .addColumn('id', 'bigint', (column) => column.primaryKey().generatedByDefaultAsIdentity())
        .addColumn('kind', 'text', (column) => column.notNull())
        .addColumn('key', 'text')
        .addColumn('payload', 'text', (column) => column.notNull())
        .addColumn('state', 'text', (column) => column.notNull())
        .addColumn('run_at', 'bigint', (column) => column.notNull())
        .addColumn('created_ts', 'bigint', (column) => column.notNull())
        .addColumn('revision', 'bigint', (column) => column.notNull())
        .addColumn('attempts', 'integer', (column) => column.notNull())
        .addColumn('lease_until', 'bigint', (column) => column.notNull())
        .addColumn('finished_ts', 'bigint')
        .addColumn('keep_until', 'bigint')
        .addColumn('result', 'text')
        .addColumn('error', 'text')
        .execute();
      await schema.run('create unique index jobs_by_key on jobs (kind, key)');
      await schema.run("create index jobs_due on jobs (run_at) where state = 'waiting'");
      await schema.run("create index jobs_kept on jobs (keep_until) where state <> 'waiting'");
    },
  },
  {
    name: 'jobs/0002-trace-context',
    async up(schema) {
      await schema.db.schema.alterTable('jobs').addColumn('trace_context', 'text').execute();
    },
  },
];
