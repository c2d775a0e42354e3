import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { adminApiPath } from '../../../scripts/admin-api.ts';
import type { Content, Schema } from './facts.ts';
import type { Operation } from './operations.ts';

interface DescribedOperation {
  readonly operationId?: string;
  readonly responses: Readonly<
    Record<string, { readonly content: Readonly<Record<string, { schema: Schema }>> }>
  >;
}

/** Reads the operations of the admin API from its description. Errors are left out: they have the standard form. */
export function adminOperations(): Operation[] {
  const text = readFileSync(join(import.meta.dirname, '..', '..', '..', adminApiPath), 'utf8');
  const { paths } = JSON.parse(text) as { paths: Record<string, Record<string, DescribedOperation>> };
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => ({
      operationId: described.operationId ?? `${method} ${path}`,
      api: 'client-server' as const,
      group: 'admin API of this server',
      method: method.toUpperCase(),
      path,
      responses: { '2XX': contentOf(described.responses['2XX']!.content) },
    })),
  );
}

const contentOf = (content: Readonly<Record<string, { schema: Schema }>>): Content =>
  Object.fromEntries(Object.entries(content).map(([type, { schema }]) => [type, schema]));
