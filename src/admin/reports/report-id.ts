import { invalidParam } from '../../protocol/index.ts';

/** Reads the id of a report from a path. @throws MatrixError M_INVALID_PARAM */
export function reportIdOf(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw invalidParam('The id of a report is a positive integer');
  return Number(text);
}
