const scalarTypes: ReadonlySet<unknown> = new Set(['null', 'boolean', 'integer', 'number']);

/** Whether a schema accepts neither strings, lists nor maps, so that values with many entries cannot match it. */
export const isScalar = (schema: unknown): boolean =>
  typeof schema === 'object' && schema !== null && 'type' in schema && scalarTypes.has(schema.type);
