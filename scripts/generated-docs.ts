import { configurationReference, configurationSchema } from '../src/configuration/reference.ts';
import { sections } from '../src/configuration.ts';
import { allPaths } from '../src/kernel/config/option-paths.ts';
import { provenOptions } from '../src/kernel/config/proven-options.ts';
import { answersPage } from './answers-table.ts';
import { moduleReference } from './module-reference.ts';
import { collectProofs, ledgerPage, ledgerProblems, provenOptionsModule } from './option-ledger.ts';

export interface GeneratedDocs {
  /** The texts of generated files, by path in the repository. */
  readonly files: ReadonlyMap<string, string>;
  /** The problems of the markers `[option: …]` in test titles. */
  readonly problems: readonly string[];
}

/**
 * Generates all files that depend on the options, on the titles of the tests below `root`, and on the expected
 * differences to the reference server.
 */
export function generatedDocs(root: string): GeneratedDocs {
  const options = allPaths(sections);
  const proofs = collectProofs(root);
  const counted = options.filter((option) => option.isCounted).map(({ path }) => path);
  const proven = counted.filter((path) => proofs.has(path));
  return {
    files: new Map([
      ['docs/generated/configuration.md', configurationReference()],
      ['docs/generated/configuration.schema.json', `${JSON.stringify(configurationSchema(), null, 2)}\n`],
      ['docs/generated/options.md', ledgerPage(proofs, counted)],
      answersPage(root),
      moduleReference(root),
      ['src/kernel/config/proven-options.ts', provenOptionsModule(proven)],
    ]),
    problems: ledgerProblems(proofs, options, provenOptions),
  };
}
