const scalarTypes: ReadonlySet<unknown> = new Set(['null', 'boolean', 'integer', 'number']);

/** Whether a schema accepts no strings, lists or maps, so that only short values can match it. */
export const isScalar = (schema: unknown): boolean =>
  typeof schema === 'object' && schema !== null && 'type' in schema && scalarTypes.has(schema.type);
