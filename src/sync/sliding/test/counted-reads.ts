/** Returns an array like `items` that counts how many of its elements are read. */
export function countedReads<T>(items: readonly T[]): { readonly items: T[]; readonly reads: () => number } {
  let count = 0;
  const counting = new Proxy([...items], {
    get(target, key, receiver) {
      if (typeof key === 'string' && /^\d+$/.test(key)) count++;
      return Reflect.get(target, key, receiver) as unknown;
    },
  });
  return { items: counting, reads: () => count };
}
