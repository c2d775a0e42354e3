import type { Registration } from './registration.ts';
import type { RegistrationFile, RegistrationProblem } from './registration-file.ts';

/** Members whose values must differ between registrations: the name, the words for messages, and how to read the value. */
const unique = [
  ['id', 'the id', ({ id }: Registration) => id],
  ['as_token', 'the as_token', ({ asToken }: Registration) => asToken],
  ['sender_localpart', 'the sender_localpart', ({ senderLocalpart }: Registration) => senderLocalpart],
] as const;

/**
 * Finds registrations that contradict each other. Equal ids, tokens and senders are errors. The same exclusive pattern
 * in two services is a warning: neither service can then create users or aliases that match.
 */
export function collisionsBetween(files: readonly RegistrationFile[]): {
  readonly errors: RegistrationProblem[];
  readonly warnings: RegistrationProblem[];
} {
  const errors: RegistrationProblem[] = [];
  const warnings: RegistrationProblem[] = [];
  for (const [path, words, read] of unique) {
    const owners = new Map<string, RegistrationFile>();
    for (const entry of files) {
      const owner = owners.get(read(entry.registration));
      if (!owner) owners.set(read(entry.registration), entry);
      else {
        const message = `${entry.file}: ${path}: is also ${words} of the service in ${owner.file}`;
        errors.push({ index: entry.index, message });
      }
    }
  }
  for (const kind of ['users', 'aliases'] as const) {
    const owners = new Map<string, RegistrationFile>();
    for (const entry of files) {
      for (const [index, { regex, exclusive }] of entry.registration[kind].entries()) {
        const owner = exclusive ? owners.get(regex) : undefined;
        if (owner && owner !== entry) {
          const place = `${entry.file}: namespaces.${kind}[${index}].regex`;
          const otherService = `the service '${owner.registration.id}' in ${owner.file}`;
          const message = `${place}: ${otherService} has the same exclusive pattern, so neither can create such ${kind}`;
          warnings.push({ index: entry.index, message });
        } else if (exclusive) owners.set(regex, entry);
      }
    }
  }
  return { errors, warnings };
}
