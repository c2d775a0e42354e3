import { freeObject, list, object, option, section, string } from '../kernel/config/index.ts';

/** Third-party code that extends the server. */
export const modulesSection = section({
  title: 'Modules',
  options: {
    modules: option(
      list(
        object({
          module: option(string({ minLength: 1 }), {
            description: 'The module and the class in it that extends the server.',
            required: true,
          }),
          config: option(freeObject(), {
            description: 'The configuration that is passed to the module.',
            default: {},
            secret: true,
          }),
        }),
      ),
      { description: 'Modules to load.', default: [] },
    ),
  },
});
